import type { HttpAnswer, HttpFailure, HttpRequest, SendLimits, Transport } from '../../http/transport.ts';
import type { SshClient } from '../../ssh/ssh-client.ts';
import type { AutoClock } from './auto-clock.ts';
import { createOffers, locations } from './catalog.ts';
import { defaultRules } from './default-rules.ts';
import { directSsh } from './direct-ssh.ts';
import type { ReferenceRequest } from './exchange.ts';
import { defaultOptions, type ReferenceOptions } from './model.ts';
import { createRouter, type Router } from './router.ts';
import type { Rules } from './rules.ts';
import type { World } from './world.ts';

/** An instance that was created. Times are milliseconds since the epoch. */
export interface Rented {
  pricePerHour: number;
  from: number;
  /** Undefined while it runs. */
  to: number | undefined;
}
/** How long a restart takes. */
const DOWN_MS = 3000;

export interface ReferenceSetup extends Partial<ReferenceOptions> {
  clock: AutoClock;
  /** Replaces rules, to make a mutant. */
  behave?: (rules: Rules, clock: AutoClock) => Rules;
}

export interface Reference {
  options: ReferenceOptions;
  transport: Transport;
  /** Logs in to the machines without sockets, and so without real time. */
  ssh: SshClient;
  /** What was rented and for how long, independent of what the API shows. */
  rented(): Rented[];
  /** Restarts the server: for some seconds it accepts no connection. */
  restart(): Promise<void>;
  /** The ids of instances that run or may run, and of existing volumes, independent of what the API shows. */
  left(): string[];
  /** Closes every SSH endpoint and cancels pending work. */
  close(): Promise<void>;
}

/** A correct orchestrator in memory. HTTP is answered in process and in virtual time; SSH is real. */
export function createReference({ clock, behave = (rules) => rules, ...chosen }: ReferenceSetup): Reference {
  const options = { ...defaultOptions, ...chosen };
  const world: World = {
    clock,
    options,
    rules: behave(defaultRules(options, clock), clock),
    offers: createOffers(options),
    locations,
    instances: new Map(),
    volumes: new Map(),
    tokens: new Map(),
  };
  let downUntilMs = 0;
  const router = createRouter(options);
  const transport: Transport = {
    send: async (request, limits) =>
      clock.now() < downUntilMs ? isDown() : send(world, router, request, limits),
    roundTripMs: async () => world.rules.roundTripMs(),
    close: async () => {},
  };
  return {
    options,
    transport,
    ssh: directSsh(world.instances),
    rented: () =>
      [...world.instances.values()].map((instance) => ({
        pricePerHour: instance.bookedPrice,
        from: instance.createdAtMs,
        to:
          instance.destroyedAtMs === undefined
            ? undefined
            : clock.wall() - clock.now() + instance.destroyedAtMs,
      })),
    async restart() {
      world.rules.afterRestart(world);
      downUntilMs = clock.now() + DOWN_MS;
    },
    left: () =>
      [
        ...[...world.instances.values()].filter(({ status }) => status !== 'DESTROYED'),
        ...[...world.volumes.values()].filter(({ isDeleted }) => !isDeleted),
      ].map(({ id }) => id),
    async close() {
      const instances = [...world.instances.values()];
      for (const instance of instances) instance.cancel();
      await Promise.all(instances.map(({ endpoint }) => endpoint.close()));
    },
  };
}

const isDown = (): HttpFailure => ({ failure: 'connect', message: 'connection refused', totalMs: 0 });

async function send(
  world: World,
  router: Router,
  { method, url, headers, body }: HttpRequest,
  { timeoutMs, maxBodyBytes, signal }: SendLimits,
): Promise<HttpAnswer | HttpFailure> {
  const { clock, rules, options } = world;
  const sentAtMs = clock.now();
  const target = new URL(url);
  const failed = (failure: HttpFailure['failure'], message: string): HttpFailure => ({
    failure,
    message,
    totalMs: clock.now() - sentAtMs,
  });
  if (target.origin !== new URL(options.baseUrl).origin)
    return failed('dns', `There is no host ${target.host}.`);
  if (!rules.acceptsConnections()) return failed('connect', `connection refused by ${target.host}`);
  const path = pathBelow(new URL(options.baseUrl).pathname, target.pathname);
  const route = router.routeOf(method, path);
  const request: ReferenceRequest = {
    method,
    path,
    ...(route !== undefined && { route }),
    query: target.searchParams,
    headers,
    text: body ?? '',
  };
  try {
    const wayMs = rules.roundTripMs() / 2;
    await clock.sleep(Math.min(wayMs, timeoutMs), signal);
    if (wayMs > timeoutMs) return failed('timeout', `No answer within ${timeoutMs} ms.`);
    const answer = await clock.during(router.answer(world, request));
    const restMs = wayMs + rules.answerDelayMs(request);
    await clock.sleep(Math.min(restMs, timeoutMs - wayMs), signal);
    if (wayMs + restMs > timeoutMs) return failed('timeout', `No answer within ${timeoutMs} ms.`);
    if (!rules.isSent(request, answer))
      return failed('reset', `${target.host} closed the connection without an answer`);
    const text = answer.raw ?? (answer.json === undefined ? '' : JSON.stringify(answer.json));
    if (Buffer.byteLength(text) > maxBodyBytes)
      return failed('too_large', `More than ${maxBodyBytes} bytes were answered.`);
    const totalMs = clock.now() - sentAtMs;
    return { status: answer.status, headers: answer.headers, body: text, firstByteMs: totalMs, totalMs };
  } catch (error) {
    if (signal?.aborted) return failed('interrupted', 'The exchange was interrupted.');
    throw error;
  }
}

/** A path outside the base URL, which no route matches. */
const pathBelow = (base: string, path: string): string =>
  path.startsWith(`${base}/`) ? path.slice(base.length) : `outside:${path}`;
