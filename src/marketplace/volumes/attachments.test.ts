import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { attachVolume, detachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { putIntent, releaseVolumes } from './intents.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

const limited = new ProviderError('limited', '429: too many', { status: 429 });
const denied = new ProviderError('not_found', '404', { status: 404, code: 'not_found' });

let world: World;
let volumeId: string;
let deploymentId: string;
beforeEach(async () => {
  world = await openWorld();
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never)));
  ({ id: deploymentId } = await world.deploy('a', (await stored())?.region ?? ''));
});
afterEach(() => world.close());

const stored = () => world.deps.store.read.volumes.byVolumeId(volumeId);
const states = async () =>
  (await world.deps.store.read.volumes.attachmentsOf({ deploymentId })).map(({ state }) => state);
const sync = () => world.settle(world.sync('a'));
const attach = () => world.codeOf(attachVolume(world.deps, caller, volumeId, deploymentId));
const detach = () => world.codeOf(detachVolume(world.deps, caller, volumeId, deploymentId));
const truly = () => world.plain('a').volumes[0]?.attached_instance_ids;

async function endDeployment(): Promise<void> {
  await world.update(deploymentId, { status: 'terminated', cleanup: 'wanted' });
  await world.deps.store.transact((tx) => releaseVolumes(tx, deploymentId, world.clock.now()));
}

describe('an attachment with a late answer', () => {
  it('is not given up because a second call for it hits the rate limit', async () => {
    world.plain('a').faults.plan = (method, nth) => {
      if (method !== 'attachVolume') return 'none';
      return nth === 1 ? { lateMs: 25_000 } : { error: limited };
    };
    expect(await attach()).toBe('PROVIDER_SLOW');
    expect(await states()).toEqual(['attaching']);
    await world.clock.advance(30_000);
    await sync();
    expect(truly()).toHaveLength(1);
    expect(await states()).toEqual(['attached']);
  });
});

it('an attachment whose deployment has ended is detached, even where the request for that has timed out', async () => {
  expect(await attach()).toBe('done');
  await world.update(deploymentId, { status: 'terminated-provider', cleanup: 'none' });
  await world.deps.store.transact((tx) => releaseVolumes(tx, deploymentId, world.clock.now()));
  await world.deps.store.transact(async (tx) => {
    const volume = await tx.volumes.byVolumeId(volumeId);
    const [attachment] = await tx.volumes.attachmentsOf({ deploymentId });
    if (volume === null || !attachment?.intent) throw new Error('there is nothing to detach');
    const timedOut = { until: world.clock.now() - 1, attempt: 1, sentAt: null };
    await putIntent(tx, volume, { ...attachment.intent, ...timedOut });
  });
  await sync();
  await world.clock.advance(30_000);
  await sync();
  expect(truly()).toEqual([]);
  expect(await stored()).toMatchObject({ status: 'available', action: null });
});

it('an attachment of a volume that is still being created for the deployment is refused, however long that takes', async () => {
  world.plain('a').faults.plan = (method) => (method === 'createVolume' ? 'lose' : 'none');
  const body = { ...bodyFor('a'), deploymentId } as never;
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, body)));
  expect(await stored()).toMatchObject({ status: 'creating', providerVolumeId: null });
  await world.clock.advance(20 * 60_000);
  expect([await attach(), await detach()]).toEqual(['CHANGE_IN_PROGRESS', 'CHANGE_IN_PROGRESS']);
  expect(await stored()).toMatchObject({ status: 'creating', action: { kind: 'create' } });
  world.plain('a').faults.plan = () => 'none';
  for (let round = 0; round < 3; round++) {
    await sync();
    await world.clock.advance(60_000);
  }
  // By then the attachment has timed out.
  expect(await stored()).toMatchObject({ status: 'available', providerVolumeId: expect.any(String) });
});

describe('a detachment', () => {
  beforeEach(async () => {
    expect(await attach()).toBe('done');
  });

  it('that was already sent is not undone because a second request is refused', async () => {
    world.plain('a').faults.plan = (method, nth) => {
      if (method !== 'detachVolume') return 'none';
      return nth === 1 ? { lateMs: 25_000 } : { error: limited };
    };
    expect(await detach()).toBe('PROVIDER_SLOW');
    expect(await detach()).toBe('done');
    await sync();
    expect(truly()).toEqual([]);
    expect(await states()).toEqual([]);
  });

  it('is not inferred from a 404 for the instance of an active deployment', async () => {
    world.plain('a').faults.plan = (method, nth) =>
      method !== 'detachVolume' || nth > 3 ? 'none' : nth === 1 ? 'lose' : { error: denied };
    await detach();
    await world.clock.advance(30_000);
    for (let round = 0; round < 3; round++) await sync();
    expect([await states(), truly()]).toEqual([[], []]);
  });

  it('that is refused after its deployment has ended is retried [volume-detach-refused-at-end]', async () => {
    const { client } = world.provider('a');
    vi.spyOn(client, 'detachVolume').mockImplementationOnce(async () => {
      await endDeployment();
      throw limited;
    });
    expect(await detach()).toBe('PROVIDER_SLOW');
    expect(await states()).toEqual(['detaching']);
    for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
    await sync();
    expect(await states()).toEqual([]);
    expect(await stored()).toMatchObject({ status: 'available', action: null });
  });

  it('that is asked for twice is refused to both, if the provider refuses it', async () => {
    vi.spyOn(world.provider('a').client, 'detachVolume').mockImplementation(async () => {
      await new Promise<void>((resolve) => void world.clock.setTimer(3_000, resolve));
      throw new ProviderError('conflict', '409: in use', { status: 409 });
    });
    const first = detach();
    await world.clock.advance(1_000);
    expect(await Promise.all([first, detach()])).toEqual(['PROVIDER_REFUSED', 'PROVIDER_REFUSED']);
    expect(await states()).toEqual(['attached']);
  });

  it('that is asked for twice is not sent later, if no worker runs', async () => {
    await world.loseLease('a');
    const first = detach();
    await world.clock.advance(3_000);
    await Promise.all([first, detach()]);
    expect(await states()).toEqual(['attached']);
    await world.clock.advance(60 * 60_000);
    await world.settle(world.anotherWorker('a').syncVolumes());
    expect(truly()).toHaveLength(1);
  });

  it('that is asked for twice stays the explanation for a restart', async () => {
    world.plain('a').faults.plan = (method) => (method === 'detachVolume' ? { lateMs: 12_000 } : 'none');
    const first = detach();
    await world.clock.advance(3_000);
    const second = detach();
    await world.clock.advance(1_000);
    const [attachment] = await world.deps.store.read.volumes.attachmentsOf({ deploymentId });
    expect(attachment?.intent?.sentAt).not.toBeNull();
    await Promise.all([first, second]);
  });

  it('of an ended deployment is awaited by each of two requests', async () => {
    await world.update(deploymentId, { status: 'terminated-provider', cleanup: 'none' });
    await world.deps.store.transact((tx) => releaseVolumes(tx, deploymentId, world.clock.now()));
    world.plain('a').faults.plan = (method) => (method === 'detachVolume' ? { lateMs: 4_000 } : 'none');
    expect(await Promise.all([detach(), detach()])).toEqual(['done', 'done']);
  });

  it('completes where the volume has broken', async () => {
    world.plain('a').options.volumeMs = 60_000;
    const asked = detach();
    await world.clock.advance(1_000);
    world.plain('a').setVolume(world.plain('a').volumes[0]?.id ?? '', { status: 'ERROR' });
    expect(await asked).toBe('PROVIDER_SLOW');
    expect([(await stored())?.status, await states()]).toEqual(['error', ['detaching']]);
    await world.clock.advance(60_000);
    expect(truly()).toEqual([]);
    await sync();
    expect(await states()).toEqual([]);
    expect(await stored()).toMatchObject({ status: 'error', action: null });
    expect(await world.deps.store.read.deployments.byId(deploymentId)).toMatchObject({ action: null });
  });
});

it('a detachment of a broken volume is completed when its deployment ends [broken-volume-released]', async () => {
  expect(await attach()).toBe('done');
  const record = await stored();
  if (record === null) throw new Error('there is no volume');
  await world.deps.store.transact((tx) => tx.volumes.update({ ...record, status: 'error' }));
  world.plain('a').breakVolume(record.providerVolumeId ?? '');
  await endDeployment();
  expect([(await stored())?.status, await states()]).toEqual(['error', ['detaching']]);
  for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
  await sync();
  expect(await states()).toEqual([]);
  expect(await stored()).toMatchObject({ status: 'error', action: null });
});

describe('a resize in progress when the deployment ends', () => {
  beforeEach(async () => {
    expect(await attach()).toBe('done');
    const silent = new ProviderError('timeout', 'no answer', { mayHaveHappened: true });
    world.plain('a').faults.plan = (method) =>
      method === 'resizeVolume' ? 'commit-then-lose' : { error: silent };
    expect(await world.codeOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 300 }))).toBe(
      'PROVIDER_SLOW',
    );
    await endDeployment();
  });

  it('is not dropped for a detachment', async () => {
    expect(await detach()).toBe('CHANGE_IN_PROGRESS');
    world.plain('a').faults.plan = () => 'none';
    for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
    await sync();
    expect(await stored()).toMatchObject({ sizeGb: 300, status: 'available', action: null });
  });

  it('leaves the detachment to be completed when it is given up', async () => {
    world.plain('a').faults.plan = () => 'none';
    world.plain('a').setVolume(world.plain('a').volumes[0]?.id ?? '', { size_gb: 100 });
    await world.clock.advance(world.deps.options.polling.actionMs);
    await sync();
    expect(await stored()).toMatchObject({ sizeGb: 100, action: null });
    expect(await states()).toEqual(['detaching']);
    for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
    await sync();
    expect(await stored()).toMatchObject({ status: 'available', action: null });
    expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('done');
  });
});
