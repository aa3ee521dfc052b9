import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import type { Call, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { Fault } from '../../../platform-model/call-faults.ts';
import type { Clock, Random } from '../../../ports/clock.ts';
import { type FaultyDriver, withFaults } from '../../kit/faults.ts';
import { createSeededRandom } from '../../kit/seeded-random.ts';
import type { Simulator } from '../platform/simulator.ts';
import { type CallName, calls, requestSchema, UNAUTHORIZED } from './protocol.ts';

const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

export interface RemoteServerOptions {
  simulator: Simulator;
  /** The token that every caller must send. If undefined, none is required, and `/control` does not exist. */
  token: string | undefined;
  clock: Clock;
}

/**
 * The simulator as an HTTP application: `POST /driver/<call>` is the driver's port. With a token it also has `GET
 * /control/truth` (the complete state), `PUT /control/faults`, and `GET /control/faults` (fault counts).
 */
export function createRemoteServer(options: RemoteServerOptions): Hono {
  const { simulator, token } = options;
  const faults = new RemoteFaults();
  const hanging = new Set<FaultyDriver>();
  const app = new Hono();
  app.use(bodyLimit({ maxSize: MAX_REQUEST_BYTES }));
  app.use(async (context, next) => {
    if (token !== undefined && !isSame(context.req.header('Authorization') ?? '', `Bearer ${token}`))
      return context.json({ error: 'BERTH_SIMULATOR_TOKEN is missing or wrong' }, UNAUTHORIZED);
    // A web page needs a CORS preflight to send this type, and none is ever granted.
    if (context.req.method !== 'GET' && context.req.header('Content-Type') !== 'application/json')
      return context.json({ error: 'expected JSON' }, 415);
    return next();
  });
  for (const name of Object.keys(calls) as CallName[])
    app.post(`/driver/${name}`, async (context) => {
      const { arguments: given, ...limits } = requestSchema.parse(await context.req.json());
      const fault = faults.draw(name);
      if (fault === 'auth') return context.json({ error: 'an injected fault' }, UNAUTHORIZED);
      if (fault === 'delay') await pause(options.clock, faults.drawDelayMs());
      const driver = withFaults(simulator, () => toKitFault(fault));
      // A caller that gives up closes its connection.
      const { signal } = context.req.raw;
      hanging.add(driver);
      try {
        return context.json((await answer(driver, name, given, { ...limits, signal })) ?? {});
      } finally {
        hanging.delete(driver);
      }
    });
  if (token !== undefined) {
    app.get('/control/truth', async (context) => context.json(await simulator.inspect()));
    app.get('/control/faults', (context) => context.json(faults.counts));
    app.put('/control/faults', async (context) => {
      faults.set(faultSettingsSchema.parse(await context.req.json()));
      for (const driver of hanging) driver.release();
      return context.json({});
    });
  }
  app.onError((error, context) => context.json({ error: error.message }, 500));
  return app;
}

/** Runs one call. A call that hangs waits until the faults are set again or the caller gives up. */
function answer(driver: PlatformDriver, name: CallName, given: readonly unknown[], limits: Call): unknown {
  const args: readonly unknown[] = calls[name].parse(given);
  const [method = '', part] = name.split('.').reverse();
  const target = part === undefined ? driver : driver[part as 'volumes' | 'writer'];
  const call = (target as Record<string, (...args: unknown[]) => unknown> | undefined)?.[method];
  if (call === undefined) throw new TypeError(`the simulator has no ${name}`);
  return call.call(target, ...args, limits);
}

function toKitFault(fault: RemoteFault | undefined): Fault {
  return fault === undefined || fault === 'delay' || fault === 'auth' ? 'none' : fault;
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

/**
 * Faults of a call: those of the kit, `delay` (the answer is up to `delayMs` late) and `auth` (the token is refused).
 */
const faultName = z.enum(['fail-before', 'fail-after', 'hang', 'unknown', 'lie-empty', 'delay', 'auth']);
type RemoteFault = z.infer<typeof faultName>;

/** Body of `PUT /control/faults`. Each later call gets the first fault that is drawn and fits the call. */
const faultSettingsSchema = z.strictObject({
  seed: z.string(),
  rates: z.partialRecord(faultName, z.number().min(0).max(1)),
  delayMs: z.number().nonnegative().default(1_000),
});
export type FaultSettings = z.infer<typeof faultSettingsSchema>;

/** Draws the fault of each call and counts the faults drawn. */
class RemoteFaults {
  #settings: FaultSettings = { seed: '', rates: {}, delayMs: 0 };
  #random: Random = createSeededRandom('');
  readonly #counts: Partial<Record<RemoteFault, number>> = {};

  set(settings: FaultSettings): void {
    this.#settings = settings;
    this.#random = createSeededRandom(settings.seed);
  }

  get counts(): Readonly<Partial<Record<RemoteFault, number>>> {
    return this.#counts;
  }

  draw(name: CallName): RemoteFault | undefined {
    const rates = Object.entries(this.#settings.rates) as [RemoteFault, number][];
    const fault = rates.find(([fault, rate]) => this.#random.next() < rate && fits(fault, name))?.[0];
    if (fault !== undefined) this.#counts[fault] = (this.#counts[fault] ?? 0) + 1;
    return fault;
  }

  drawDelayMs(): number {
    return Math.round(this.#random.next() * this.#settings.delayMs);
  }
}

function fits(fault: RemoteFault, name: CallName): boolean {
  const isListing = name === 'list' || name === 'volumes.list';
  if (fault === 'lie-empty') return isListing;
  return fault !== 'unknown' || isListing || name === 'get' || name === 'volumes.get';
}
