import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Call, PlatformDriver, VolumeDriver } from '../../../orchestrator/model/platform-driver.ts';
import type { Fault } from '../../../platform-model/call-faults.ts';
import type { Clock } from '../../../ports/clock.ts';
import { type FaultyDriver, withFaults } from '../../kit/faults.ts';
import type { Simulator } from '../platform/simulator.ts';
import { faultSettingsSchema, type RemoteFault, RemoteFaults } from './faults.ts';
import {
  type CallAnswer,
  type CallArguments,
  type CallName,
  calls,
  type RemoteRequest,
  refusals,
  requestSchema,
} from './protocol.ts';

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
      return context.json({ error: 'BERTH_SIMULATOR_TOKEN is missing or wrong' }, refusals.unauthorized);
    // A web page needs a CORS preflight to send this type, and none is ever granted.
    if (context.req.method !== 'GET' && context.req.header('Content-Type') !== 'application/json')
      return context.json({ error: 'expected JSON' }, 415);
    return next();
  });
  for (const name of Object.keys(calls) as CallName[])
    app.post(`/driver/${name}`, async (context) => {
      const request = requestSchema.parse(await context.req.json());
      const fault = faults.draw(name);
      if (fault === 'auth') return context.json({ error: 'an injected fault' }, refusals.unauthorized);
      if (fault === 'delay') await pause(options.clock, faults.drawDelayMs());
      const driver = withFaults(simulator, () => toKitFault(fault));
      const { deadline, fence } = request;
      // A caller that gives up closes its connection.
      const { signal } = context.req.raw;
      hanging.add(driver);
      try {
        return context.json(await answer(driver, name, request, { deadline, fence, signal }));
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
async function answer<Name extends CallName>(
  driver: PlatformDriver,
  name: Name,
  { arguments: given }: RemoteRequest,
  limits: Call,
): Promise<unknown> {
  const args = calls[name].arguments.parse(given) as CallArguments<Name>;
  return handlersOf(driver, limits)[name](...args);
}

type Handlers = { [Name in CallName]: (...given: CallArguments<Name>) => Promise<CallAnswer<Name>> };

function handlersOf(driver: PlatformDriver, limits: Call): Handlers {
  const volumes = volumesOf(driver);
  const { disown, inventory, writer } = driver;
  const { usage } = volumes;
  if (usage === undefined) throw new TypeError('the simulator knows how much of its volumes is used');
  if (disown === undefined) throw new TypeError('the simulator takes its mark off');
  if (writer === undefined) throw new TypeError('the simulator keeps the mark of its writer');
  if (inventory === undefined) throw new TypeError('the simulator counts its units');
  return {
    get: (ref) => driver.get(ref),
    list: () => driver.list(),
    inventory: (avoidHosts) => inventory.call(driver, avoidHosts),
    create: (spec, cookie) => driver.create(spec, cookie, limits),
    stop: (ref, cookie) => driver.stop(ref, cookie, limits),
    start: (ref, cookie) => driver.start(ref, cookie, limits),
    restart: (ref, id, cookie) => driver.restart(ref, id, cookie, limits),
    destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order, limits),
    disown: (ref, cookie) => disown.call(driver, ref, cookie, limits),
    'writer.read': async (key) => [...(await writer.read(key))],
    'writer.write': async (key, text) => {
      await writer.write(key, text);
      return {};
    },
    'volumes.get': (ref) => volumes.get(ref),
    'volumes.list': () => volumes.list(),
    'volumes.usage': () => usage.call(volumes),
    'volumes.create': (spec, cookie) => volumes.create(spec, cookie, limits),
    'volumes.attach': (ref, machine, cookie) => volumes.attach(ref, machine, cookie, limits),
    'volumes.detach': (ref, machine, cookie) => volumes.detach(ref, machine, cookie, limits),
    'volumes.resize': (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie, limits),
    'volumes.destroy': (ref, cookie, order) => volumes.destroy(ref, cookie, order, limits),
  };
}

function volumesOf({ volumes }: PlatformDriver): VolumeDriver {
  if (volumes === undefined) throw new TypeError('the simulator has volumes');
  return volumes;
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
