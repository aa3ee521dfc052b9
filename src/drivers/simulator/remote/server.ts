import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { PlatformDriver, VolumeDriver } from '../../../orchestrator/model/platform-driver.ts';
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
  ORDER_VALID_MS,
  type RemoteRequest,
  refusals,
  requestSchema,
} from './protocol.ts';

const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

export interface RemoteServerOptions {
  simulator: Simulator;
  /** What every caller must show; undefined: nothing, and there is no `/control`. */
  token: string | undefined;
  clock: Clock;
}

/** An order that waited longer than it is valid for. */
class TooLate extends Error {
  override readonly name = 'TooLate';
}

/**
 * The simulator as an HTTP application: `POST /driver/<call>` is the driver's port. With a token there is
 * `GET /control/truth` (all that there is), `PUT /control/faults` and `GET /control/faults` (how many there were).
 */
export function createRemoteServer(options: RemoteServerOptions): Hono {
  const { simulator, token } = options;
  const faults = new RemoteFaults();
  const hanging = new Set<FaultyDriver>();
  const app = new Hono();
  app.use(bodyLimit({ maxSize: MAX_REQUEST_BYTES }));
  app.use(async (context, next) => {
    if (token !== undefined && !isSame(context.req.header('Authorization') ?? '', `Bearer ${token}`))
      return context.json(
        { error: 'BERTH_SIMULATOR_TOKEN is missing or another one' },
        refusals.unauthorized,
      );
    // A web page cannot send this type without asking first, and is never allowed to.
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
      return context.json(await answer(options, name, request, toKitFault(fault), hanging));
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
  app.onError((error, context) =>
    context.json({ error: error.message }, error instanceof TooLate ? refusals.too_late : 500),
  );
  return app;
}

/** Carries one call out. A call that hangs waits until the faults are set anew. */
async function answer<Name extends CallName>(
  { simulator, clock }: RemoteServerOptions,
  name: Name,
  { sentAt, arguments: given }: RemoteRequest,
  fault: Fault,
  hanging: Set<FaultyDriver>,
): Promise<unknown> {
  const driver = withFaults(
    inTime(simulator, () => {
      if (clock.now() - sentAt > ORDER_VALID_MS) throw new TooLate(`the order ${name} came too late`);
    }),
    () => fault,
  );
  const args = calls[name].arguments.parse(given) as CallArguments<Name>;
  hanging.add(driver);
  try {
    return await handlersOf(driver)[name](...args);
  } finally {
    hanging.delete(driver);
  }
}

type Handlers = { [Name in CallName]: (...given: CallArguments<Name>) => Promise<CallAnswer<Name>> };

function handlersOf(driver: PlatformDriver): Handlers {
  const volumes = volumesOf(driver);
  return {
    get: (ref) => driver.get(ref),
    list: () => driver.list(),
    create: (spec, cookie) => driver.create(spec, cookie),
    stop: (ref, cookie) => driver.stop(ref, cookie),
    start: (ref, cookie) => driver.start(ref, cookie),
    restart: (ref, id, cookie) => driver.restart(ref, id, cookie),
    destroy: (ref, cookie, order) => driver.destroy(ref, cookie, order),
    'volumes.get': (ref) => volumes.get(ref),
    'volumes.list': () => volumes.list(),
    'volumes.create': (spec, cookie) => volumes.create(spec, cookie),
    'volumes.attach': (ref, machine, cookie) => volumes.attach(ref, machine, cookie),
    'volumes.detach': (ref, machine, cookie) => volumes.detach(ref, machine, cookie),
    'volumes.resize': (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie),
    'volumes.destroy': (ref, cookie, order) => volumes.destroy(ref, cookie, order),
  };
}

/** The driver with `check` made before each order, at the moment when it would be carried out. */
function inTime(driver: PlatformDriver, check: () => void): PlatformDriver {
  const volumes = volumesOf(driver);
  const checked =
    <Given extends unknown[], Answer>(order: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      check();
      return order(...given);
    };
  return {
    ...driver,
    create: checked(driver.create),
    stop: checked(driver.stop),
    start: checked(driver.start),
    restart: checked(driver.restart),
    destroy: checked(driver.destroy),
    volumes: {
      get: (ref) => volumes.get(ref),
      list: () => volumes.list(),
      create: checked((spec, cookie) => volumes.create(spec, cookie)),
      attach: checked((ref, machine, cookie) => volumes.attach(ref, machine, cookie)),
      detach: checked((ref, machine, cookie) => volumes.detach(ref, machine, cookie)),
      resize: checked((ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie)),
      destroy: checked((ref, cookie, order) => volumes.destroy(ref, cookie, order)),
    },
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

/** Takes as long whatever is wrong. */
function isSame(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
