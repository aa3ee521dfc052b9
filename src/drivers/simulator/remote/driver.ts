import type { Call, PlatformDriver, Step } from '../../../orchestrator/model/platform-driver.ts';
import { failed } from '../../../platform-model/steps.ts';
import type { Clock } from '../../../ports/clock.ts';
import { NotReached } from '../../../ports/errors.ts';
import { orFailure, orUnknown } from '../../kit/answers.ts';
import type { SimulatorBehavior } from '../options.ts';
import { manifestOf } from '../platform/rules.ts';
import { Refused, RemoteClient } from './client.ts';
import {
  type CallAnswer,
  type CallArguments,
  type CallName,
  calls,
  ORDER_VALID_MS,
  type RemoteRequest,
  refusals,
} from './protocol.ts';

export interface RemoteSimulatorOptions {
  /** Address of a `berth simulator`, such as `http://127.0.0.1:8090`. */
  address: string;
  /** As that simulator behaves; default: as the bundled one. */
  attachVolume?: SimulatorBehavior['attachVolume'];
  token: string | undefined;
}

/**
 * The driver of a simulator in another process, so that several servers can sell one platform. Each call is one
 * request. Nothing is sent before the first, so a server can start while the simulator is down. If an answer is lost,
 * a read answers unknown and a step rejects: neither proves absence.
 */
export function connectSimulator(
  { address, attachVolume = 'hot', token }: RemoteSimulatorOptions,
  clock: Pick<Clock, 'now'>,
): PlatformDriver {
  const client = new RemoteClient(address, token);

  async function ask<Name extends CallName>(
    name: Name,
    ...given: CallArguments<Name>
  ): Promise<CallAnswer<Name>> {
    return send(name, given);
  }

  async function send<Name extends CallName>(
    name: Name,
    given: CallArguments<Name>,
    call?: Call,
  ): Promise<CallAnswer<Name>> {
    const sentAt = clock.now();
    const deadline = Math.min(call?.deadline ?? Number.POSITIVE_INFINITY, sentAt + ORDER_VALID_MS);
    if (sentAt > deadline || call?.signal.aborted === true)
      throw new NotReached('the call was cancelled before it was sent');
    const body: RemoteRequest = { deadline, fence: call?.fence ?? sentAt, arguments: given };
    const answer = await client.send('POST', `/driver/${name}`, body, call?.signal);
    return calls[name].answer.parse(answer) as CallAnswer<Name>;
  }

  return {
    manifest: manifestOf({ attachVolume }, ORDER_VALID_MS),
    get: (ref) => orUnknown(() => ask('get', ref)),
    list: () => orUnknown(() => ask('list')),
    inventory: (avoidHosts = []) => orUnknown(() => ask('inventory', [...avoidHosts])),
    create: (spec, cookie, call) => order(() => send('create', [spec, cookie], call)),
    stop: (ref, cookie, call) => order(() => send('stop', [ref, cookie], call)),
    start: (ref, cookie, call) => order(() => send('start', [ref, cookie], call)),
    restart: (ref, id, cookie, call) => order(() => send('restart', [ref, id, cookie], call)),
    destroy: (ref, cookie, given, call) => order(() => send('destroy', [ref, cookie, given], call)),
    disown: (ref, cookie, call) => order(() => send('disown', [ref, cookie], call)),
    writer: {
      read: (key) => ask('writer.read', key),
      write: async (key, text) => void (await ask('writer.write', key, text)),
    },
    volumes: {
      get: (ref) => orUnknown(() => ask('volumes.get', ref)),
      list: () => orUnknown(() => ask('volumes.list')),
      usage: () => orUnknown(() => ask('volumes.usage')),
      create: (spec, cookie, call) => order(() => send('volumes.create', [spec, cookie], call)),
      attach: (ref, machine, cookie, call) =>
        order(() => send('volumes.attach', [ref, machine, cookie], call)),
      detach: (ref, machine, cookie, call) =>
        order(() => send('volumes.detach', [ref, machine, cookie], call)),
      resize: (ref, sizeGb, cookie, call) => order(() => send('volumes.resize', [ref, sizeGb, cookie], call)),
      destroy: (ref, cookie, given, call) => order(() => send('volumes.destroy', [ref, cookie, given], call)),
    },
    async close() {
      client.close();
    },
  };
}

/**
 * Classifies an error. A request known not to have begun fails without a side effect. The core treats any other error
 * as unknown.
 */
function toFailure(error: unknown): Step<never> {
  if (error instanceof NotReached) return failed('transient', error.message);
  if (error instanceof Refused && error.status === refusals.unauthorized)
    return failed('auth', error.message);
  throw error;
}

const order = <T>(call: () => Promise<Step<T>>) => orFailure(call, toFailure);
