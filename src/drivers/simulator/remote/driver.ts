import type { Listing, PlatformDriver, Presence, Step } from '../../../orchestrator/model/platform-driver.ts';
import { failed } from '../../../platform-model/steps.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { SimulatorConfig } from '../options.ts';
import { manifestOf } from '../platform/rules.ts';
import { NotReached, Refused, RemoteClient } from './client.ts';
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
  /** Where a `berth simulator` answers, such as `http://127.0.0.1:8090`. */
  address: string;
  attachVolume: SimulatorConfig['attach_volume'];
  token: string | undefined;
}

/**
 * The driver of a simulator in another process, so that several servers sell one platform. Each call is one request;
 * nothing is asked before the first, so a server also starts while the simulator is down. A look whose answer
 * is lost is unknown, an order rejects: neither ever proves absence.
 */
export function connectSimulator(
  { address, attachVolume, token }: RemoteSimulatorOptions,
  clock: Pick<Clock, 'now'>,
): PlatformDriver {
  const client = new RemoteClient(address, token);

  async function ask<Name extends CallName>(
    name: Name,
    ...given: CallArguments<Name>
  ): Promise<CallAnswer<Name>> {
    const body: RemoteRequest = { sentAt: clock.now(), arguments: given };
    return calls[name].answer.parse(await client.send('POST', `/driver/${name}`, body)) as CallAnswer<Name>;
  }

  return {
    manifest: manifestOf({ attach_volume: attachVolume }, ORDER_VALID_MS),
    get: (ref) => look(() => ask('get', ref)),
    list: () => look(() => ask('list')),
    create: (spec, cookie) => order(() => ask('create', spec, cookie)),
    stop: (ref, cookie) => order(() => ask('stop', ref, cookie)),
    start: (ref, cookie) => order(() => ask('start', ref, cookie)),
    restart: (ref, id, cookie) => order(() => ask('restart', ref, id, cookie)),
    destroy: (ref, cookie) => order(() => ask('destroy', ref, cookie)),
    volumes: {
      get: (ref) => look(() => ask('volumes.get', ref)),
      list: () => look(() => ask('volumes.list')),
      create: (spec, cookie) => order(() => ask('volumes.create', spec, cookie)),
      attach: (ref, machine, cookie) => order(() => ask('volumes.attach', ref, machine, cookie)),
      detach: (ref, machine, cookie) => order(() => ask('volumes.detach', ref, machine, cookie)),
      resize: (ref, sizeGb, cookie) => order(() => ask('volumes.resize', ref, sizeGb, cookie)),
      destroy: (ref, cookie) => order(() => ask('volumes.destroy', ref, cookie)),
    },
    async close() {
      client.close();
    },
  };
}

async function look<Answer extends Presence<unknown> | Listing<unknown>>(
  call: () => Promise<Answer>,
): Promise<Answer | { answer: 'unknown'; reason: string }> {
  try {
    return await call();
  } catch (error) {
    return { answer: 'unknown', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** What is known not to have been begun fails without a side effect; any other error is the core's to doubt. */
async function order<T>(call: () => Promise<Step<T>>): Promise<Step<T>> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof NotReached) return failed('transient', error.message);
    if (error instanceof Refused && error.status === refusals.unauthorized)
      return failed('auth', error.message);
    if (error instanceof Refused && error.status === refusals.too_late)
      return failed('transient', error.message);
    throw error;
  }
}
