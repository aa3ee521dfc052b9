import { describe, expect, it } from 'vitest';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { until } from '../support/time/until.ts';
import { startWithVolumeFaults, withVolumes } from './volume-races.fixture.ts';

describe('a volume that is still being made', () => {
  it('whose create comes back after its DELETE is gone all the same, on the platform too', async () => {
    const { orchestrator, volume, remove, waitForVolume, setPlan, heal, calls } = await startWithVolumeFaults(
      {
        reconcile: { leaseMs: 200 },
        // A platform that compares neither deadline nor fence.
        wrapDriver: (driver) => withVolumes(driver, () => ({})),
      },
    );
    await using _ = orchestrator;
    setPlan(({ method }) => (method === 'volumes.create' ? 'hang' : 'none'));
    const id = await volume();
    await until('it is called', () => calls('volumes.create') > 0);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    // The platform carries the create out now.
    heal();
    await until('it was made and removed', () => calls('volumes.destroy') > 1);
    await until('nothing is left', async () => {
      const listing = await orchestrator.simulator.volumes?.list();
      return listing?.answer === 'listed' && listing.items.length === 0;
    });
  });

  const slow = { volumeMs: [300, 300] } as const;

  it('and is detached again before it is there ends AVAILABLE', async () => {
    const { orchestrator, volume, online, detach, waitForVolume } = await startWithVolumeFaults({
      platform: slow,
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume({ instance_ids: [machine] });
    const reply = await detach(id);
    expect([reply.status, reply.body['status']]).toEqual([200, 'CREATING']);
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });

  it('while its instance is destroyed ends AVAILABLE', async () => {
    const { orchestrator, volume, online, remove, waitForVolume } = await startWithVolumeFaults({
      platform: { volumeMs: [600, 600] },
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume({ instance_ids: [machine] });
    await remove(`/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    await waitForVolume(id, 'AVAILABLE');
    expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  });

  it('can be attached, detached and attached again before it is there', async () => {
    const { orchestrator, volume, online, attach, detach, waitForVolume } = await startWithVolumeFaults({
      platform: slow,
    });
    await using _ = orchestrator;
    const machine = await online();
    const id = await volume();
    await attach(id, machine);
    await detach(id);
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
  });

  it('and is deleted is gone from the platform too', async () => {
    const { orchestrator, volume, remove, waitForVolume } = await startWithVolumeFaults({ platform: slow });
    await using _ = orchestrator;
    const id = await volume();
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'GONE');
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});

describe('a volume that can be shared', () => {
  it('is attached to the instance that is there, while another is not yet', async () => {
    const slow = Promise.withResolvers<void>();
    let creates = 0;
    const { orchestrator, volume, instance, online, attach } = await startWithVolumeFaults({
      wrapDriver: (driver) => ({
        ...driver,
        create: async (spec, cookie) => {
          if (++creates > 1 && spec.hostname.startsWith('slow')) await slow.promise;
          return driver.create(spec, cookie);
        },
      }),
    });
    await using _ = orchestrator;
    const type = orchestrator.catalog.regions
      .get('eu-frankfurt')
      ?.volumeTypes.find(({ shareable }) => shareable)?.name;
    const id = await volume({ type });
    const ready = await online();
    const late = await instance({ name: 'slow' });
    await attach(id, late);
    await attach(id, ready);
    const attached = async () =>
      (await orchestrator.request('GET', `/volumes/${id}`)).body['attached_instance_ids'];
    await until('it is attached to the one', async () => String(await attached()) === ready, 5_000);
    slow.resolve();
    await until('it is attached to both', async () => ((await attached()) as string[]).length === 2);
  });
});

it('the attachment of a volume that the platform does not have is taken back [attach-volume-gone]', async () => {
  const { orchestrator, available, online, attach, remove, waitForVolume, settled } =
    await startWithVolumeFaults();
  await using _ = orchestrator;
  const machine = await online();
  // One that stays: a listing without the only volume there was is not believed for a while.
  await available();
  const id = await available();
  await settled(id);
  const { volumes } = orchestrator.simulator;
  await until('a person has removed it', async () => {
    const step = await volumes?.destroy(`berth-${id}`, null, anOrder);
    return step?.outcome === 'done';
  });
  expect((await attach(id, machine)).body['status']).toBe('ATTACHING');
  await waitForVolume(id, 'AVAILABLE');
  expect(await orchestrator.store.read.volumes.attachmentsOfVolume(id)).toEqual([]);
  await remove(`/volumes/${id}`);
  await waitForVolume(id, 'GONE');
});

describe('a volume that is being deleted', () => {
  it('is deleted all the same when its instance ends meanwhile [volume-delete-instance-ends]', async () => {
    const { orchestrator, available, online, attach, detach, remove, setPlan, heal, waitForVolume } =
      await startWithVolumeFaults();
    await using _ = orchestrator;
    const machine = await online();
    const id = await available();
    await attach(id, machine);
    await waitForVolume(id, 'ATTACHED');
    setPlan(({ method }) =>
      method === 'volumes.detach' || method === 'volumes.destroy' ? 'fail-before' : 'none',
    );
    await detach(id);
    await remove(`/volumes/${id}`);
    await waitForVolume(id, 'DELETING');
    await remove(`/instances/${machine}`);
    await orchestrator.waitFor(machine, 'GONE');
    heal();
    await waitForVolume(id, 'GONE');
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});
