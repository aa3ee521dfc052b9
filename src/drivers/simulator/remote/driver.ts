import { z } from 'zod';
import type { Inventory } from '../../../orchestrator/model/inventory.ts';
import type { Call, PlatformDriver, Step } from '../../../orchestrator/model/platform-driver.ts';
import { failed } from '../../../platform-model/steps.ts';
import type { Clock } from '../../../ports/clock.ts';
import { NotReached } from '../../../ports/errors.ts';
import { orFailure, orUnknown } from '../../kit/answers.ts';
import { hasCode, httpTransport, NO_CONNECTION } from '../../kit/http-transport.ts';
import { manifestOf } from '../platform/rules.ts';
import { type CallName, ORDER_VALID_MS, type RemoteRequest, UNAUTHORIZED } from './protocol.ts';

export interface RemoteSimulatorOptions {
  /** Address of a `berth simulator`, such as `http://127.0.0.1:8090`. */
  address: string;
  token: string | undefined;
}

/** The simulator refused the token: the request had no effect. */
class Unauthorized extends Error {
  override readonly name = 'Unauthorized';
}

const UNSENT: ReadonlySet<string> = new Set(NO_CONNECTION);
const OUTCOMES = ['done', 'pending', 'failed'];

/**
 * The driver of a simulator in another process, so that several servers can sell one platform. Each call is one
 * request. Nothing is sent before the first, so a server can start while the simulator is down. If an answer is lost,
 * a read answers unknown and a step rejects: neither proves absence.
 */
export function connectSimulator(
  { address, token }: RemoteSimulatorOptions,
  clock: Pick<Clock, 'now'>,
): PlatformDriver {
  // No limits: a caller that gives up aborts its call.
  const transport = httpTransport({}, 0, null);
  const closed = new AbortController();
  const headers = {
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };

  /**
   * @throws {NotReached} if nothing was sent
   * @throws {Unauthorized}
   * @throws {Error} if the answer is lost or invalid
   */
  async function send<T>(name: CallName, given: readonly unknown[], call?: Call): Promise<T> {
    const sentAt = clock.now();
    const deadline = Math.min(call?.deadline ?? Number.POSITIVE_INFINITY, sentAt + ORDER_VALID_MS);
    if (sentAt > deadline || call?.signal.aborted === true)
      throw new NotReached('the call was cancelled before it was sent');
    const request: RemoteRequest = { deadline, fence: call?.fence ?? sentAt, arguments: [...given] };
    const signal = call === undefined ? closed.signal : AbortSignal.any([closed.signal, call.signal]);
    const sent = { method: 'POST', url: new URL(`/driver/${name}`, address).href, headers, signal } as const;
    const { status, text } = await transport
      .send({ ...sent, body: JSON.stringify(request) })
      .catch((error: Error) => {
        if (hasCode(error, UNSENT))
          throw new NotReached(`no simulator answers at ${address} (${error.message})`, { cause: error });
        throw new Error(`the answer of the simulator at ${address} was lost`, { cause: error });
      });
    if (status === UNAUTHORIZED) throw new Unauthorized(`the simulator refuses the token: ${text}`);
    if (status !== 200) throw new Error(`the simulator answers ${status}: ${text.slice(0, 300)}`);
    return JSON.parse(text) as T;
  }

  const read =
    <T extends { answer: string }>(name: CallName, ...answers: T['answer'][]) =>
    (...given: readonly unknown[]): Promise<T | { answer: 'unknown'; reason: string }> =>
      orUnknown(async () => known(await send<T>(name, given), 'answer', [...answers, 'unknown']));
  const countFree = read<Inventory>('inventory', 'counted');
  /** A step whose `count` arguments are followed by the limits of the call. */
  const step =
    <T>(name: CallName, count: number) =>
    (...given: readonly unknown[]): Promise<Step<T>> =>
      orFailure(async () => {
        const limits = given[count] as Call | undefined;
        return known(await send<Step<T>>(name, given.slice(0, count), limits), 'outcome', OUTCOMES);
      }, toFailure);

  return {
    manifest: manifestOf({ attachVolume: 'hot' }, ORDER_VALID_MS),
    get: read('get', 'observed', 'gone'),
    list: read('list', 'listed'),
    inventory: (avoidHosts = []) => countFree(avoidHosts),
    create: step('create', 2),
    stop: step('stop', 2),
    start: step('start', 2),
    restart: step('restart', 3),
    destroy: step('destroy', 3),
    disown: step('disown', 2),
    writer: {
      read: async (key) => z.array(z.string()).parse(await send('writer.read', [key])),
      write: async (key, text) => void (await send('writer.write', [key, text])),
    },
    volumes: {
      get: read('volumes.get', 'observed', 'gone'),
      list: read('volumes.list', 'listed'),
      usage: read('volumes.usage', 'listed'),
      create: step('volumes.create', 2),
      attach: step('volumes.attach', 3),
      detach: step('volumes.detach', 3),
      resize: step('volumes.resize', 3),
      destroy: step('volumes.destroy', 3),
    },
    async close() {
      closed.abort(new Error('the driver was closed'));
      await transport.close();
    },
  };
}

/** @throws {Error} if another program than a simulator has answered */
function known<T extends object>(answer: T, key: string, expected: readonly string[]): T {
  const found = (answer as Record<string, unknown>)[key];
  if (expected.includes(String(found))) return answer;
  throw new Error(`the simulator answers ${JSON.stringify(found)} as ${key}`);
}

/**
 * Classifies an error. A request known not to have begun fails without a side effect. The core treats any other error
 * as unknown.
 */
function toFailure(error: unknown): Step<never> {
  if (error instanceof NotReached) return failed('transient', error.message);
  if (error instanceof Unauthorized) return failed('auth', error.message);
  throw error;
}
