import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  create,
  type DriverSuiteContext,
  destroy,
  finish,
  finishAfterCrash,
  NOTE,
  refsOf,
} from './calls.suite.ts';
import { describeVolumes } from './volumes.suite.ts';

export type { DriverSuiteContext } from './calls.suite.ts';

export interface DriverSuiteHooks {
  setup: () => Promise<DriverSuiteContext>;
  /** Called after each test; everything that `setup` opened is to be closed. */
  teardown: (context: DriverSuiteContext) => Promise<void>;
}

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
    describeRestart(() => context);
    describeCrashes(() => context);
    describeVolumes(() => context);
  });
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

function describeCrashes(context: () => DriverSuiteContext): void {
  it('goes on with a create, a stop, a start and a destroy of which the core knows nothing any more', async () => {
    const { driver, machineSpec } = context();
    const { stop, resume } = driver.manifest;
    const made = await finishAfterCrash(context(), (cookie) => driver.create(machineSpec('suite-a'), cookie));
    expect(made).toMatchObject({ ref: 'suite-a', power: 'running' });
    if (stop) {
      const stopped = await finishAfterCrash(context(), (cookie) => driver.stop('suite-a', cookie));
      expect(stopped).toMatchObject({ power: 'stopped', createdAt: made.createdAt });
    }
    if (stop && resume) {
      const started = await finishAfterCrash(context(), (cookie) => driver.start('suite-a', cookie));
      expect(started).toMatchObject({ power: 'running', createdAt: made.createdAt });
    }
    expect(await refsOf(context())).toEqual(['suite-a']);
    await finishAfterCrash(context(), (cookie) => driver.destroy('suite-a', cookie));
    expect(await driver.get('suite-a')).toEqual({ answer: 'gone' });
  });

  it('gives the note of a machine back from its first look to its last, or none at all', async () => {
    const { driver, machineSpec } = context();
    const spec = { ...machineSpec('suite-a'), note: NOTE };
    const expected = driver.manifest.keepsNotes ? NOTE : undefined;
    await driver.create(spec, null);
    const early = await driver.get('suite-a');
    expect(early.answer === 'observed' ? early.value.note : early).toBe(expected);
    const made = await finish(context(), (cookie) => driver.create(spec, cookie));
    expect(made.note).toBe(expected);
    const listing = await driver.list();
    expect(listing.answer === 'listed' ? listing.items.map(({ note }) => note) : listing).toEqual([expected]);
    if (!driver.manifest.stop) return;
    const stopped = await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    expect(stopped.note).toBe(expected);
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

function describeRestart(context: () => DriverSuiteContext): void {
  const restart = (id: string) => (cookie: string | null) => context().driver.restart('suite-a', id, cookie);

  it('resets a machine that runs, once for each id, or says that it cannot', async () => {
    const { driver } = context();
    const made = await create(context(), 'suite-a');
    if (!driver.manifest.restart) {
      expect(await restart('one')(null)).toMatchObject({
        outcome: 'failed',
        code: 'unsupported',
        sideEffect: 'none',
      });
      return;
    }
    const restarted = await finish(context(), restart('one'));
    expect(restarted).toMatchObject({ power: 'running', createdAt: made.createdAt, endpoint: made.endpoint });
    expect(await restart('one')(null)).toEqual({ outcome: 'done', value: restarted });
    expect(await finishAfterCrash(context(), restart('two'))).toEqual(restarted);
    expect(await refsOf(context())).toEqual(['suite-a']);
  });

  it('restarts nothing that is not there, or that does not run', async () => {
    const { driver } = context();
    if (!driver.manifest.restart) return;
    expect(await restart('one')(null)).toMatchObject({ outcome: 'failed', code: 'gone', sideEffect: 'none' });
    await create(context(), 'suite-a');
    if (!driver.manifest.stop) return;
    await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    expect(await restart('one')(null)).toMatchObject({
      outcome: 'failed',
      code: 'conflict',
      sideEffect: 'none',
    });
    expect(await driver.get('suite-a')).toMatchObject({ value: { power: 'stopped' } });
  });
}
