import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type {
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../orchestrator/ports/platform-driver.ts';

/** What a driver's platform must offer to the suite. */
export interface DriverSuiteContext {
  driver: PlatformDriver;
  /** A machine that fits on the platform; `ref` is fresh each time. */
  machineSpec: (ref: OwnerRef) => MachineSpec;
  volumeSpec: (ref: OwnerRef) => VolumeSpec;
  /** How many machines of `machineSpec` the platform holds at once. */
  units: number;
  /** Lets the platform's time pass. */
  wait: (ms: number) => Promise<void>;
}

export interface DriverSuiteHooks {
  setup: () => Promise<DriverSuiteContext>;
  /** Called after each test; everything that `setup` opened is to be closed. */
  teardown: (context: DriverSuiteContext) => Promise<void>;
}

const MAX_POLLS = 200;

/** The behaviour that the core relies on, for every driver. */
export function describeDriver(name: string, hooks: DriverSuiteHooks): void {
  describe(`${name}, as a platform driver`, () => {
    let context: DriverSuiteContext;
    beforeEach(async () => {
      context = await hooks.setup();
    });
    afterEach(() => hooks.teardown(context));

    describeLooks(() => context);
    describeLifecycle(() => context);
    describePower(() => context);
    describeVolumes(() => context);
  });
}

/** Repeats a step, as the core does, until it is done. @throws if it fails. */
async function finish<T>(
  { wait }: DriverSuiteContext,
  call: (cookie: string | null) => Promise<Step<T>>,
): Promise<T> {
  let cookie: string | null = null;
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const step = await call(cookie);
    if (step.outcome === 'done') return step.value;
    if (step.outcome === 'failed') throw new Error(`${step.code}: ${step.detail}`);
    expect(step.pollAfterMs).toBeGreaterThan(0);
    cookie = step.cookie;
    await wait(step.pollAfterMs);
  }
  throw new Error('the step never ended');
}

function create(context: DriverSuiteContext, ref: OwnerRef): Promise<ObservedMachine> {
  return finish(context, (cookie) => context.driver.create(context.machineSpec(ref), cookie));
}

function destroy(context: DriverSuiteContext, ref: OwnerRef): Promise<null> {
  return finish(context, (cookie) => context.driver.destroy(ref, cookie));
}

async function refsOf({ driver }: DriverSuiteContext): Promise<OwnerRef[]> {
  const listing = await driver.list();
  if (listing.answer === 'unknown') throw new Error(listing.reason);
  return listing.items.map((item) => item.ref).sort();
}

function describeLooks(context: () => DriverSuiteContext): void {
  it('answers gone for a machine that was never made', async () => {
    expect(await context().driver.get('suite-none')).toEqual({ answer: 'gone' });
  });

  it('lists exactly the machines that carry our refs', async () => {
    expect(await refsOf(context())).toEqual([]);
    await create(context(), 'suite-a');
    expect(await refsOf(context())).toEqual(['suite-a']);
    await destroy(context(), 'suite-a');
    expect(await refsOf(context())).toEqual([]);
  });
}

function describeLifecycle(context: () => DriverSuiteContext): void {
  it('makes a machine that can be observed, with an endpoint', async () => {
    const machine = await create(context(), 'suite-a');

    expect(machine).toMatchObject({ ref: 'suite-a', power: 'running' });
    expect(machine.endpoint).toMatchObject({ publicIp: expect.any(String), sshUsername: expect.any(String) });
    expect(await context().driver.get('suite-a')).toEqual({ answer: 'observed', value: machine });
  });

  it('shows a machine from the first call of create on', async () => {
    await context().driver.create(context().machineSpec('suite-a'), null);
    expect(await context().driver.get('suite-a')).toMatchObject({
      answer: 'observed',
      value: { ref: 'suite-a' },
    });
  });

  it('adopts the machine when create is repeated without its cookie', async () => {
    const machine = await create(context(), 'suite-a');
    const again = await create(context(), 'suite-a');
    expect(again).toEqual(machine);
    expect(await refsOf(context())).toEqual(['suite-a']);
  });

  it('makes one machine when create is called twice at once', async () => {
    const { driver, machineSpec } = context();
    await Promise.all([
      driver.create(machineSpec('suite-a'), null),
      driver.create(machineSpec('suite-a'), null),
    ]);
    await create(context(), 'suite-a');
    expect(await refsOf(context())).toEqual(['suite-a']);
  });

  it('refuses a machine beyond the capacity, and changes nothing', async () => {
    const { driver, machineSpec, units } = context();
    for (let unit = 0; unit < units; unit++) await create(context(), `suite-${unit}`);

    expect(await driver.create(machineSpec('suite-over'), null)).toMatchObject({
      outcome: 'failed',
      code: 'capacity',
      sideEffect: 'none',
    });
    expect(await driver.get('suite-over')).toEqual({ answer: 'gone' });

    await destroy(context(), 'suite-0');
    expect(await create(context(), 'suite-over')).toMatchObject({ power: 'running' });
  });

  it('destroys until the machine is proved gone', async () => {
    await create(context(), 'suite-a');
    await destroy(context(), 'suite-a');
    expect(await context().driver.get('suite-a')).toEqual({ answer: 'gone' });
  });

  it('destroys a machine that is still being built', async () => {
    await context().driver.create(context().machineSpec('suite-a'), null);
    await destroy(context(), 'suite-a');
    expect(await context().driver.get('suite-a')).toEqual({ answer: 'gone' });
  });

  it('is done at once destroying what is not there, however often', async () => {
    await create(context(), 'suite-a');
    await Promise.all([destroy(context(), 'suite-a'), destroy(context(), 'suite-a')]);
    expect(await context().driver.destroy('suite-a', null)).toEqual({ outcome: 'done', value: null });
    expect(await context().driver.destroy('suite-none', null)).toEqual({ outcome: 'done', value: null });
  });
}

function describePower(context: () => DriverSuiteContext): void {
  it('stops and starts a machine, twice over, or says that it cannot', async () => {
    const { driver } = context();
    const made = await create(context(), 'suite-a');
    if (!driver.manifest.stop) {
      expect(await driver.stop('suite-a', null)).toMatchObject({
        outcome: 'failed',
        code: 'unsupported',
        sideEffect: 'none',
      });
      return;
    }
    const stop = (cookie: string | null) => driver.stop('suite-a', cookie);
    expect(await finish(context(), stop)).toMatchObject({ power: 'stopped' });
    expect(await finish(context(), stop)).toMatchObject({ power: 'stopped' });

    const start = (cookie: string | null) => driver.start('suite-a', cookie);
    if (!driver.manifest.resume) {
      expect(await start(null)).toMatchObject({ outcome: 'failed', code: 'unsupported', sideEffect: 'none' });
      return;
    }
    const started = await finish(context(), start);
    expect(started).toMatchObject({ power: 'running', endpoint: made.endpoint });
    expect(await finish(context(), start)).toEqual(started);
  });

  it('fails with gone when it is to stop or start what is not there', async () => {
    const { driver } = context();
    const code = driver.manifest.stop ? 'gone' : 'unsupported';
    expect(await driver.stop('suite-none', null)).toMatchObject({
      outcome: 'failed',
      code,
      sideEffect: 'none',
    });
    expect(await driver.start('suite-none', null)).toMatchObject({ outcome: 'failed', sideEffect: 'none' });
  });

  it('destroys a stopped machine', async () => {
    const { driver } = context();
    await create(context(), 'suite-a');
    if (driver.manifest.stop) await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await destroy(context(), 'suite-a');
    expect(await driver.get('suite-a')).toEqual({ answer: 'gone' });
  });
}

function describeVolumes(context: () => DriverSuiteContext): void {
  function volumesOf({ driver }: DriverSuiteContext): VolumeDriver | undefined {
    expect(driver.volumes !== undefined, 'volumes and the manifest disagree').toBe(
      driver.manifest.attachVolume !== 'none',
    );
    return driver.volumes;
  }
  const make = (volumes: VolumeDriver, ref: OwnerRef) =>
    finish(context(), (cookie) => volumes.create(context().volumeSpec(ref), cookie));
  const look = async (volumes: VolumeDriver, ref: OwnerRef) => {
    const presence = await volumes.get(ref);
    return presence.answer === 'observed' ? presence.value.attachedTo : presence.answer;
  };

  it('makes, lists and destroys volumes, each call repeated', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    expect(await look(volumes, 'suite-v')).toBe('gone');
    const made = await make(volumes, 'suite-v');
    expect(await make(volumes, 'suite-v')).toEqual(made);
    expect(await volumes.list()).toEqual({ answer: 'listed', items: [made] });
    await finish(context(), (cookie) => volumes.destroy('suite-v', cookie));
    expect(await volumes.destroy('suite-v', null)).toEqual({ outcome: 'done', value: null });
    expect(await look(volumes, 'suite-v')).toBe('gone');
  });

  it('attaches and detaches a volume, each call repeated', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    const attach = (cookie: string | null) => volumes.attach('suite-v', 'suite-a', cookie);
    if (driver.manifest.attachVolume === 'cold') {
      expect(await attach(null)).toMatchObject({ outcome: 'failed', code: 'conflict', sideEffect: 'none' });
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    }
    await finish(context(), attach);
    await finish(context(), attach);
    expect(await look(volumes, 'suite-v')).toEqual(['suite-a']);

    const detach = (cookie: string | null) => volumes.detach('suite-v', 'suite-a', cookie);
    await finish(context(), detach);
    await finish(context(), detach);
    expect(await look(volumes, 'suite-v')).toEqual([]);
  });

  it('keeps a volume when its machine is destroyed, and drops the attachment', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await finish(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    await destroy(context(), 'suite-a');
    expect(await look(volumes, 'suite-v')).toEqual([]);
  });

  it('destroys a volume that is still attached', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await finish(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    await finish(context(), (cookie) => volumes.destroy('suite-v', cookie));
    expect(await look(volumes, 'suite-v')).toBe('gone');
  });
}
