import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import type { MemoryHost } from './memory-host.fixture.ts';
import { aMachine, openMemoryPlatform } from './platform.fixture.ts';

const REF = 'berth-a';

describe('a late call', () => {
  /** A machine, a volume, and a second server whose next command that begins with `word` can be delayed. */
  async function late() {
    const machine = await aMachine();
    const { host, volumes, bench } = machine;
    await volumes.create({ ...bench.context.volumeSpec('berth-v'), host: host.name }, null);
    const own = Object.create(host) as MemoryHost;
    let held = '';
    let reached = Promise.withResolvers<void>();
    let awake = Promise.withResolvers<void>();
    const virsh: MemoryHost['virsh'] = async (args, call) => {
      if (args[0] === held) {
        held = '';
        reached.resolve();
        await awake.promise;
      }
      return host.virsh(args, call);
    };
    Object.defineProperty(own, 'virsh', { value: virsh });
    const slow = openMemoryPlatform([own]).bench.driver;
    /** Runs `call` until it is about to send `word`, then `between`, then the rest. */
    const hold = async <T>(word: string, call: () => Promise<T>, between: () => Promise<unknown>) => {
      [held, reached, awake] = [word, Promise.withResolvers(), Promise.withResolvers()];
      const calling = call();
      await reached.promise;
      await between();
      awake.resolve();
      return calling;
    };
    const runs = () => host.domains.get(REF)?.live !== undefined;
    return { ...machine, slow, hold, runs };
  }

  it.each(['without', 'with'])('to stop it does not stop its next run, %s a claim', async (claim) => {
    const { slow, hold, runs, bench } = await late();
    const call = claim === 'with' ? bench.call() : undefined;
    await hold(
      'shutdown',
      () => slow.stop(REF, null, call),
      async () => {
        await bench.stop(REF);
        await bench.start(REF);
      },
    );
    expect(runs()).toBe(true);
  });

  it('to stop it does not stop the run that a later start has found', async () => {
    const { slow, hold, runs, driver, bench } = await late();
    const step = await hold(
      'shutdown',
      () => slow.stop(REF, null, bench.call()),
      async () => expect(await driver.start(REF, null, bench.call())).toMatchObject({ outcome: 'done' }),
    );
    expect(step).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
    expect(runs()).toBe(true);
  });

  it('to cut its power in a restart does not cut that of its next run', async () => {
    const { slow, hold, bench, host } = await late();
    await slow.restart(REF, 'one', null);
    await hold(
      'destroy',
      () => slow.restart(REF, 'one', 'kvm-1'),
      () => bench.finish('restart', (cookie) => bench.driver.restart(REF, 'one', cookie)),
    );
    expect(host.domains.get(REF)?.live?.attributes['id']).toBe('2');
  });

  it('to start it does not start it once a stop has found it stopped', async () => {
    const { slow, hold, runs, bench, driver } = await late();
    await bench.stop(REF);
    const claimed = await slow.start(REF, null, bench.call());
    expect(claimed.outcome).toBe('pending');
    await hold(
      'start',
      () => slow.start(REF, 'kvm-1', bench.call()),
      () => bench.finish('stop', (cookie) => driver.stop(REF, cookie, bench.call())),
    );
    expect(runs()).toBe(false);
  });

  it('to start it does not report the disk of a machine that was moved meanwhile as lost', async () => {
    const { slow, hold, host, bench } = await late();
    await bench.stop(REF);
    const move = async () => [host.domains.delete(REF), host.files.delete(`${REF}.qcow2`)];
    const step = await hold('pool-dumpxml', () => slow.start(REF, null, bench.call()), move);
    expect(step).toMatchObject({ outcome: 'failed', code: 'gone' });
  });

  it('to attach a volume does not attach it after a detach that found nothing', async () => {
    const { slow, hold, volumes, bench } = await late();
    const step = await hold(
      'attach-device',
      async () => slow.volumes?.attach('berth-v', REF, null, bench.call()),
      async () =>
        expect(await volumes.detach('berth-v', REF, null, bench.call())).toMatchObject({ outcome: 'done' }),
    );
    expect(step).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
    expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [] } });
  });

  it('to detach a volume does not detach it after an attach that found it attached', async () => {
    const { slow, hold, volumes, bench } = await late();
    await volumes.attach('berth-v', REF, null);
    await hold(
      'detach-disk',
      async () => slow.volumes?.detach('berth-v', REF, null, bench.call()),
      async () =>
        expect(await volumes.attach('berth-v', REF, null, bench.call())).toMatchObject({ outcome: 'done' }),
    );
    expect(await volumes.get('berth-v')).toMatchObject({ value: { attachedTo: [REF] } });
  });

  it('to resize a volume does not make it smaller', async () => {
    const { slow, hold, volumes, bench } = await late();
    await volumes.attach('berth-v', REF, null);
    await hold(
      'blockresize',
      async () => slow.volumes?.resize('berth-v', 20, null, bench.call()),
      async () => volumes.resize('berth-v', 40, null, bench.call()),
    );
    expect(await volumes.get('berth-v')).toMatchObject({ value: { sizeGb: 40 } });
  });

  it('to read it writes nothing into the mark of its next run', async () => {
    const { host, slow, hold, bench, definition } = await late();
    host.define((await definition()).replace('<berth:memo/>', '<berth:memo>boot</berth:memo>'));
    await hold(
      'metadata',
      () => slow.get(REF).catch(() => undefined),
      async () => bench.stop(REF),
    );
    expect(await definition()).toContain('state="released"');
  });
});

it('a call that is over reports whether something was started', async () => {
  const { driver, host } = await aMachine();
  const over: Call = { deadline: -1, fence: 1, signal: new AbortController().signal };
  expect(await driver.stop(REF, null, over)).toMatchObject({ code: 'transient', sideEffect: 'none' });
  expect(await driver.stop(REF, '0:1', over)).toMatchObject({ code: 'transient', sideEffect: 'possible' });
  expect(await driver.destroy(REF, null, anOrder, over)).toMatchObject({ sideEffect: 'none' });
  expect(host.domains.get(REF)?.live).toBeDefined();
});
