import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/orchestrator/model/platform-driver.ts';
import { until } from '../support/time/until.ts';
import { startWithVolumeFaults, withVolumes } from './volume-races.fixture.ts';

const cold = { attachVolume: 'cold', stopMs: [2_000, 2_000] } as const;

describe('on a platform that attaches only while the machine is stopped', () => {
  it('a detach of an ONLINE instance stops and starts it too', async () => {
    const { orchestrator, available, online, attach, detach, waitForVolume } = await startWithVolumeFaults({
      platform: cold,
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
    await orchestrator.waitFor(machine, 'ONLINE');
    await detach(id);
    await orchestrator.waitFor(machine, 'STOPPING');
    await waitForVolume(id, 'AVAILABLE');
    await orchestrator.waitFor(machine, 'ONLINE');
    expect(await orchestrator.store.read.claims.isHeldBy(machine)).toBe(true);
  });

  it('an attachment that is taken back while the machine stops has it started again', async () => {
    const { orchestrator, available, online, attach, detach, settled } = await startWithVolumeFaults({
      platform: cold,
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await orchestrator.waitFor(machine, 'STOPPING');
    await detach(id);
    await settled(id);
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('two volumes are attached in one cycle, and the machine is started once', async () => {
    const { orchestrator, available, online, attach, waitForVolume } = await startWithVolumeFaults({
      platform: cold,
    });
    await using _ = orchestrator;
    const machine = await online();
    const ids = [await available(), await available()];
    const seen: string[] = [];
    orchestrator.store.subscribe({
      instancesChanged: (records) => seen.push(...records.map(({ status }) => status)),
    });
    await Promise.all(ids.map((id) => attach(id, machine)));
    for (const id of ids) await waitForVolume(id, 'ATTACHED');
    await orchestrator.waitFor(machine, 'ONLINE');
    expect(seen.filter((status, index) => status !== seen[index - 1])).toEqual([
      'STOPPING',
      'STOPPED',
      'ONLINE',
    ]);
  });

  it('a volume that the platform refuses to make leaves no instance stopped', async () => {
    let isRefused = false;
    const { orchestrator, available, volume, online, attach, waitForVolume } = await startWithVolumeFaults({
      platform: cold,
      wrapDriver: (driver) =>
        withVolumes(driver, (volumes) => ({
          create: async (spec, cookie): Promise<Step<never>> => {
            if (spec.sizeGb !== 123) return (await volumes.create(spec, cookie)) as Step<never>;
            return isRefused
              ? { outcome: 'failed', code: 'quota', sideEffect: 'none', detail: 'no more' }
              : { outcome: 'pending', cookie: 'c', pollAfterMs: 10 };
          },
        })),
    });
    await using _ = orchestrator;
    const machine = await online();
    const good = await available();
    const bad = await volume({ size_gb: 123, instance_ids: [machine] });
    await attach(good, machine);
    await waitForVolume(good, 'ATTACHED');
    isRefused = true;
    await waitForVolume(bad, 'ERROR');
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('a volume that is deleted in the middle of the cycle leaves no instance stopped', async () => {
    const {
      orchestrator,
      available,
      online,
      attach,
      detach,
      remove,
      setPlan,
      heal,
      waitForVolume,
      hasCalled,
    } = await startWithVolumeFaults({ platform: cold });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    setPlan(({ method }) =>
      method === 'volumes.attach' || method === 'volumes.detach' ? 'fail-before' : 'none',
    );
    await attach(id, machine);
    await until('the attach is tried', () => hasCalled('volumes.attach'));
    await detach(id);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    heal();
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('a machine that is looked at while it is stopped for a volume is started all the same', async () => {
    let isListEmpty = false;
    let getsMay: Promise<void> | undefined;
    const attachMay = Promise.withResolvers<void>();
    const { orchestrator, available, online, attach, waitForVolume, hasCalled } = await startWithVolumeFaults(
      {
        platform: { ...cold, volumeMs: [0, 0] },
        reconcile: { watchIntervalMs: 20, emptyForMs: 2_000 },
        wrapDriver: (driver) => ({
          ...withVolumes(driver, (volumes) => ({
            attach: async (ref, machine, cookie) => {
              await attachMay.promise;
              return volumes.attach(ref, machine, cookie);
            },
          })),
          list: async () => (isListEmpty ? { answer: 'listed', items: [] } : driver.list()),
          get: async (ref) => {
            await getsMay;
            return driver.get(ref);
          },
        }),
      },
    );
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    const looked = Promise.withResolvers<void>();
    await attach(id, machine);
    await until('the attach is called', () => hasCalled('volumes.attach'));
    getsMay = looked.promise;
    isListEmpty = true;
    await until('the machine is looked at', async () => {
      return (await orchestrator.store.read.work.of(machine))?.kind === 'observe';
    });
    attachMay.resolve();
    await waitForVolume(id, 'ATTACHED');
    isListEmpty = false;
    looked.resolve();
    await orchestrator.waitFor(machine, 'ONLINE');
  });

  it('an instance that could not be started again is never stopped for a volume', async () => {
    const { orchestrator, available, online, attach, settled, waitForVolume, hasCalled } =
      await startWithVolumeFaults({
        platform: cold,
        changeOffer: (offer) => ({ ...offer, resumable: false }),
      });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'AVAILABLE');
    await settled(id);
    expect(hasCalled('stop')).toBe(false);
    expect((await orchestrator.request('GET', `/instances/${machine}`)).body['status']).toBe('ONLINE');
  });

  it('an attachment that never succeeds does not hold the machine stopped', async () => {
    const { orchestrator, volume, online, setPlan, waitForVolume } = await startWithVolumeFaults({
      platform: cold,
      onlineWithinMs: 1_000,
    });
    await using _ = orchestrator;
    const machine = await online();
    setPlan(({ method }) => (method === 'volumes.attach' ? 'fail-before' : 'none'));
    const id = await volume({ instance_ids: [machine] });
    await orchestrator.waitFor(machine, 'STOPPED');
    await orchestrator.waitFor(machine, 'ONLINE');
    await waitForVolume(id, 'AVAILABLE');
  });

  it('an attachment to a stopped machine that has failed is taken back [attach-machine-failed]', async () => {
    let isBroken = false;
    const conflict = {
      outcome: 'failed',
      code: 'conflict',
      sideEffect: 'none',
      detail: 'it is broken',
    } as const;
    const { orchestrator, available, online, attach, waitForVolume } = await startWithVolumeFaults({
      platform: cold,
      wrapDriver: (driver) => ({
        ...withVolumes(driver, (volumes) => ({
          attach: async (...given) => (isBroken ? conflict : volumes.attach(...given)),
        })),
        get: async (ref) => {
          const found = await driver.get(ref);
          if (!isBroken || found.answer !== 'observed') return found;
          return { answer: 'observed', value: { ...found.value, power: 'failed' } };
        },
      }),
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await orchestrator.request('POST', `/instances/${machine}/stop`);
    await orchestrator.waitFor(machine, 'STOPPED');
    isBroken = true;
    await attach(id, machine);
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });
});
