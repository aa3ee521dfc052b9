import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { unreadableAnswers } from '../../../test/support/doubles/provider-faults.ts';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import { attachedVolumeSchema, detachedVolumeSchema, updatedVolumeSchema } from '../contract/volume.ts';
import { postDue } from '../ledger/post-due.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { attachVolume, detachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { assertUnchanging, releaseVolumes } from './intents.ts';
import { listVolumeRegions, readVolumePricing } from './locations.ts';
import { listVolumes, readVolume } from './read.ts';
import { bodyFor, caller, makeVolume, openWorld, stranger, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const HOUR = 3_600_000;

const create = (letter: string, changes = {}) => makeVolume(world, letter, changes);
const read = (volumeId: string) => world.settle(readVolume(world.deps, caller, volumeId));
const sync = (letter: string) => world.settle(world.sync(letter));
const segments = (id: string) => world.deps.store.read.ledger.segmentsOf('volume', id);
const deployment = (id: string) => world.deps.store.read.deployments.byId(id);
const attachmentsOf = (deploymentId: string) => world.deps.store.read.volumes.attachmentsOf({ deploymentId });
const only = async () => (await world.volumes())[0];
/** Whether the deployment accepts no other change. */
const isHeld = async (id: string) => {
  const { store, options } = world.deps;
  const record = (await deployment(id)) as DeploymentRecord;
  return assertUnchanging(store.read, record, world.clock.now(), options).then(
    () => false,
    () => true,
  );
};

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await world.settle(promise).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

async function attached(letter: string) {
  const volume = await create(letter);
  const { id } = await world.deploy(letter, volume.region);
  await world.settle(attachVolume(world.deps, caller, volume.volumeId, id));
  return { volumeId: volume.volumeId, deploymentId: id };
}

describe('an attachment', () => {
  it('is reported until the provider no longer has a record of it [volume-attachment-reported]', async () => {
    const { volumeId, deploymentId } = await attached('d');
    expect(await read(volumeId)).toMatchObject({
      status: 'attached',
      attachedToDeploymentIds: [deploymentId],
      lastAttachedAt: expect.any(String),
    });
    const answer = await world.settle(detachVolume(world.deps, caller, volumeId, deploymentId));
    expect(answer).toMatchObject({ status: 'available', attachedToDeploymentIds: [] });
    expect(world.plain('d').volumes[0]?.attached_instance_ids).toEqual([]);
  });

  it('answers with the fields that M: names, as do a detach and a resize [volume-attachment-fields]', async () => {
    const { volumeId, region } = await create('e');
    const { id } = await world.deploy('e', region);
    const attach = await world.settle(attachVolume(world.deps, caller, volumeId, id));
    expect(attachedVolumeSchema.strict().parse(attach)).toEqual(attach);
    const attachedAt = attach.lastAttachedAt;
    expect(attach).toMatchObject({ status: 'attached', attachedToOrderIds: [] });
    const detach = await world.settle(detachVolume(world.deps, caller, volumeId, id));
    expect(detachedVolumeSchema.strict().parse(detach)).toEqual(detach);
    expect(detach).toMatchObject({ status: 'available', attachedToDeploymentIds: [] });
    expect(Date.parse(detach.lastDetachedAt ?? '')).toBeGreaterThan(Date.parse(attachedAt ?? ''));
    const grown = await world.settle(updateVolume(world.deps, caller, volumeId, { sizeInGb: 200 }));
    expect(updatedVolumeSchema.strict().parse(grown)).toEqual(grown);
    expect(grown).toMatchObject({ volumeId, sizeInGb: 200, hourlyRate: 0.022 });
  });

  it('blocks other changes of the deployment while it is in progress: 409', async () => {
    const volume = await create('d');
    const { id } = await world.deploy('d', volume.region, {
      action: intent('restart', { since: world.clock.now() }),
    });
    const error = await failure(attachVolume(world.deps, caller, volume.volumeId, id));
    expect(error.code).toBe('CHANGE_IN_PROGRESS');
    expect(await only()).toMatchObject({ status: 'available', action: null });
  });

  it.each([
    ['begins [attach-restarts-instance]', attachVolume],
    ['ends [detach-restarts-instance]', detachVolume],
  ])(
    'that %s with a restart of the instance waits until it is back, and holds the deployment until then',
    async (_, change) => {
      const { volumeId, region } = await create('e');
      const { id, providerInstanceId } = await world.deploy('e', region);
      if (change === detachVolume) await world.settle(attachVolume(world.deps, caller, volumeId, id));
      world.plain('e').blink(providerInstanceId ?? '', 'STOPPED', 10_000);
      const startedAt = world.clock.now();
      const changing = world.settle(change(world.deps, caller, volumeId, id));
      await world.clock.advance(0);
      expect(await isHeld(id)).toBe(true);
      await changing;
      expect(world.clock.now() - startedAt).toBeGreaterThanOrEqual(10_000);
      expect(await deployment(id)).toMatchObject({ status: 'running' });
      expect(await isHeld(id)).toBe(false);
    },
  );

  it('that restarts a spot instance does not stop its deployment, also if the answer to a poll arrives late', async () => {
    const { volumeId, region } = await create('e');
    const { id, providerInstanceId } = await world.deploy('e', region, { instanceType: 'SPOT' });
    world.plain('e').blink(providerInstanceId ?? '', 'STOPPED', 10_000);
    const { client } = world.provider('e');
    const { promise: arrives, resolve: arrive } = Promise.withResolvers<void>();
    const pollInstance = client.pollInstance.bind(client);
    vi.spyOn(client, 'pollInstance').mockImplementationOnce(async (...args) => {
      const answer = await pollInstance(...args);
      await arrives;
      return answer;
    });
    const attaching = world.settle(attachVolume(world.deps, caller, volumeId, id));
    await world.clock.advance(5_000);
    const late = world.pollDeployment('e', id);
    await world.clock.advance(0);
    await world.pollDeployment('e', id);
    expect(await deployment(id)).toMatchObject({ status: 'running' });
    await attaching;
    arrive();
    await late;
    expect(await deployment(id)).toMatchObject({ status: 'running' });
  });

  it('that is slow is 504 and is finished later', async () => {
    const volume = await create('d');
    const { id } = await world.deploy('d', volume.region);
    world.plain('d').options.volumeMs = 60_000;
    const error = await failure(attachVolume(world.deps, caller, volume.volumeId, id));
    expect(error.code).toBe('PROVIDER_SLOW');
    expect(await isHeld(id)).toBe(true);
    await world.clock.advance(60_000);
    await sync('d');
    expect(await isHeld(id)).toBe(false);
    expect(await only()).toMatchObject({ status: 'attached' });
    expect(await attachmentsOf(id)).toMatchObject([{ state: 'attached' }]);
  });

  it('whose answer is lost is requested again', async () => {
    const volume = await create('d');
    const { id } = await world.deploy('d', volume.region);
    world.plain('d').faults.plan = (method, nth) =>
      method === 'attachVolume' && nth === 1 ? 'lose' : 'none';
    const answer = await world.settle(attachVolume(world.deps, caller, volume.volumeId, id));
    expect(answer.status).toBe('attached');
    expect(world.plain('d').faults.countOf('attachVolume')).toBe(2);
  });

  it('ends with its deployment: the volume is available once the provider has detached it [volume-freed-with-deployment]', async () => {
    const { volumeId, deploymentId } = await attached('d');
    const { store, clock } = world.deps;
    await world.update(deploymentId, { status: 'terminated', cleanup: 'wanted' });
    await store.transact((tx) => releaseVolumes(tx, deploymentId, clock.now()));
    await sync('d');
    expect(await only()).toMatchObject({ status: 'attached' });
    expect((await attachmentsOf(deploymentId))[0]).toMatchObject({ state: 'detaching' });
    expect(world.plain('d').faults.countOf('detachVolume')).toBe(0);
    world.plain('d').delete((await deployment(deploymentId))?.providerInstanceId ?? '');
    await world.clock.advance(10_000);
    expect(world.plain('d').instances).toEqual([]);
    await sync('d');
    expect(await only()).toMatchObject({ status: 'available', action: null });
    expect((await read(volumeId)).attachedToDeploymentIds).toEqual([]);
  });
});

describe('a deletion', () => {
  it('is refused while the volume is on an active deployment [volume-delete-while-attached]', async () => {
    const { volumeId } = await attached('d');
    const before = world.writes();
    expect((await failure(deleteVolume(world.deps, caller, volumeId))).code).toBe('VALIDATION_ERROR');
    expect(world.writes()).toEqual(before);
  });

  it('ends the bill at once, and is proved afterwards; a second one is success [volume-delete]', async () => {
    const volume = await create('a');
    await world.clock.advance(HOUR);
    const acceptedAt = world.clock.now();
    await world.settle(deleteVolume(world.deps, caller, volume.volumeId));
    expect(await segments(volume.id)).toMatchObject([{ endedAt: acceptedAt }]);
    expect((await only())?.deletedAt).toBe(acceptedAt);
    await world.settle(deleteVolume(world.deps, caller, volume.volumeId));
    await world.clock.advance(5_000);
    await sync('a');
    expect(await only()).toMatchObject({ status: 'deleted', cleanup: 'done', action: null });
    expect(world.plain('a').faults.countOf('deleteVolume')).toBe(1);
  });

  it('detaches the volume from an instance that no deployment has any more', async () => {
    const volume = await create('d');
    const instance = world
      .plain('d')
      .create({ configuration_id: 'gpu-1', region: volume.region, ssh_keys: ['key'] });
    world.plain('d').options.volumeMs = 0;
    world.plain('d').attach(world.plain('d').volumes[0]?.id ?? '', [instance.id]);
    await world.settle(deleteVolume(world.deps, caller, volume.volumeId));
    await sync('d');
    expect(world.plain('d').volumes).toEqual([]);
    expect((await only())?.status).toBe('deleted');
  });

  it('whose answer is lost is repeated until it is proved', async () => {
    const volume = await create('a');
    world.plain('a').faults.plan = (method, nth) => (method === 'deleteVolume' && nth < 3 ? 'lose' : 'none');
    await world.settle(deleteVolume(world.deps, caller, volume.volumeId));
    for (let turn = 0; turn < 4; turn++) {
      await sync('a');
      await world.clock.advance(20_000);
    }
    expect(world.plain('a').volumes).toEqual([]);
    expect((await only())?.status).toBe('deleted');
  });
});

describe('a resize', () => {
  it('costs its price from then on [volume-resize-price]', async () => {
    const volume = await create('a');
    // A server whose clock is ahead has billed beyond now.
    await postDue(world.deps, await segments(volume.id), world.clock.now() + 2 * 3_600_000);
    const changed = await world.settle(
      updateVolume(world.deps, caller, volume.volumeId, { name: 'more', sizeInGb: 300 }),
    );
    expect(changed).toMatchObject({ name: 'more', sizeInGb: 300, hourlyRate: 0.0822 });
    const [first, second] = await segments(volume.id);
    expect(second).toMatchObject({ rateMicroUsdPerHour: 82_200, startedAt: first?.endedAt, endedAt: null });
    expect((await only())?.lastPriceUpdateAt).toBe(second?.startedAt);
  });

  it('is refused where no offer announces that volumes can be resized', async () => {
    const volume = await create('a');
    for (const offer of world.provider('a').catalog.offers.values())
      Object.assign(offer, { announcesVolumeResize: false });
    const error = await failure(updateVolume(world.deps, caller, volume.volumeId, { sizeInGb: 300 }));
    expect(error.message).toMatch(/does not announce support for resizing/);
  });

  it('stays pending until the provider shows the new size, through other requests in the meantime [volume-resize-awaited]', async () => {
    const volume = await create('a');
    const silent = new ProviderError('timeout', 'no answer', { mayHaveHappened: true });
    world.plain('a').faults.plan = (method) =>
      method === 'resizeVolume' ? 'commit-then-lose' : { error: silent };
    await failure(updateVolume(world.deps, caller, volume.volumeId, { sizeInGb: 300 }));
    await world.clock.advance(2 * world.deps.options.polling.actionMs);
    await sync('a');
    const other = await failure(updateVolume(world.deps, caller, volume.volumeId, { sizeInGb: 400 }));
    expect(other.code).toBe('CHANGE_IN_PROGRESS');
    world.plain('a').faults.plan = () => 'none';
    await sync('a');
    expect(await only()).toMatchObject({ sizeGb: 300, action: null });
  });
});

describe('a change that the provider refuses', () => {
  let volumeId: string;
  let deploymentId: string;
  beforeEach(async () => {
    ({ volumeId } = await create('a'));
    ({ id: deploymentId } = await world.deploy('a', 'us-dallas'));
  });

  const changes = {
    createVolume: () => createVolume(world.deps, caller, bodyFor('a')),
    attachVolume: () => attachVolume(world.deps, caller, volumeId, deploymentId),
    resizeVolume: () => updateVolume(world.deps, caller, volumeId, { name: 'more', sizeInGb: 300 }),
    deleteVolume: () => deleteVolume(world.deps, caller, volumeId),
  } as const;
  const refused = new ProviderError('refused', '400: no', { status: 400 });
  const conflict = (code: string) => new ProviderError('conflict', '409: no', { status: 409, code });

  it.each([
    ['createVolume', refused, 502, undefined],
    ['createVolume', conflict('capacity_unavailable'), 400, 'out_of_stock'],
    ['createVolume', conflict('quota_exceeded'), 400, 'quota_exceeded'],
    ['attachVolume', conflict('invalid_state'), 502, undefined],
    ['resizeVolume', refused, 502, undefined],
    ['resizeVolume', conflict('capacity_unavailable'), 400, 'out_of_stock'],
    ['resizeVolume', conflict('quota_exceeded'), 400, 'quota_exceeded'],
    ['deleteVolume', refused, 502, undefined],
  ] as const)(
    '%s: %s is a %d with the reason %s, and nothing changed',
    async (name, error, status, reason) => {
      world.plain('a').faults.plan = (method) => (method === name ? { error } : 'none');
      const answer = await failure(changes[name]());
      expect([answer.status, answer.details]).toEqual([status, { volumeId: expect.any(String), reason }]);
      const [last, first = last] = await world.volumes();
      expect(first).toMatchObject({ volumeId, name: 'data', sizeGb: 100, status: 'available', action: null });
      expect(await segments(first?.id ?? '')).toMatchObject([{ endedAt: null }]);
      expect(await world.deps.store.read.volumes.attachmentsOf({ deploymentId })).toEqual([]);
      expect(await isHeld(deploymentId)).toBe(false);
      if (name !== 'createVolume') return;
      expect(last).toMatchObject({ status: 'deleted', startedAt: null, action: null });
      expect(await segments(last?.id ?? '')).toEqual([]);
    },
  );
});

it.each(Object.keys(unreadableAnswers))(
  'shows the known state when the provider answers: %s [volume-known-state-shown]',
  async (kind) => {
    const volume = await create('a');
    const before = await only();
    world.plain('a').faults.plan = () => ({ error: (unreadableAnswers[kind] as () => ProviderError)() });
    expect(await read(volume.volumeId)).toEqual(volume);
    expect(await only()).toEqual(before);
  },
);

describe('a volume that the provider no longer knows during a resize', () => {
  const gone = new ProviderError('not_found', '404', { status: 404, code: 'not_found' });
  let volumeId: string;
  beforeEach(async () => {
    ({ volumeId } = await create('a'));
    world.plain('a').faults.plan = (method) =>
      method === 'resizeVolume' ? 'commit-then-lose' : { error: gone };
    await failure(updateVolume(world.deps, caller, volumeId, { sizeInGb: 300 }));
    await world.clock.advance(2 * world.deps.options.polling.actionMs);
    await sync('a');
  });

  it('is kept, with one alarm, and its size is taken over when the provider knows it again [volume-resize-denied]', async () => {
    expect((await read(volumeId)).status).toBe('available');
    expect(await only()).toMatchObject({ sizeGb: 100, action: { kind: 'resize' } });
    expect(world.logged.filter(({ level }) => level === 'error')).toHaveLength(1);
    world.plain('a').faults.plan = () => 'none';
    await sync('a');
    expect(await only()).toMatchObject({ sizeGb: 300, action: null });
  });

  it('can be deleted', async () => {
    // The client treats a 404 as a completed deletion.
    world.plain('a').faults.plan = (method) =>
      method === 'deleteVolume' ? { instead: false } : { error: gone };
    await world.settle(deleteVolume(world.deps, caller, volumeId));
    await sync('a');
    expect(await only()).toMatchObject({ status: 'deleted', action: null });
  });

  it('continues its resize where the provider refuses to delete it', async () => {
    const refused = new ProviderError('refused', '400: no', { status: 400 });
    world.plain('a').faults.plan = (method) => ({ error: method === 'deleteVolume' ? refused : gone });
    expect((await failure(deleteVolume(world.deps, caller, volumeId))).code).toBe('PROVIDER_REFUSED');
    expect(await only()).toMatchObject({ sizeGb: 100, action: null });
    world.plain('a').faults.plan = () => 'none';
    await sync('a');
    expect(await only()).toMatchObject({ sizeGb: 300 });
  });
});

it('a resize that the provider never shows is given up after a time', async () => {
  const { volumeId } = await create('a');
  const lost = new ProviderError('timeout', 'no answer', { mayHaveHappened: true });
  world.plain('a').faults.plan = (method) => (method === 'resizeVolume' ? { error: lost } : 'none');
  await failure(updateVolume(world.deps, caller, volumeId, { sizeInGb: 300 }));
  expect(await only()).toMatchObject({ action: { kind: 'resize' } });
  await world.clock.advance(world.deps.options.polling.actionMs);
  await sync('a');
  expect(await only()).toMatchObject({ status: 'available', sizeGb: 100, action: null });
});

it("lists a page of one team's volumes, without deleted ones unless they are asked for [volume-list]", async () => {
  const names = ['one', 'two', 'three'];
  for (const name of names) {
    await create('a', { name });
    await world.clock.advance(1_000);
  }
  await world.settle(deleteVolume(world.deps, caller, (await only())?.volumeId ?? ''));
  await world.clock.advance(5_000);
  await sync('a');
  const page = await listVolumes(world.deps, caller, { page: 2, limit: 1 });
  expect(page).toMatchObject({ total: 2, page: 2, limit: 1, totalPages: 2, volumes: [{ name: 'one' }] });
  const deleted = await listVolumes(world.deps, caller, { status: 'deleted' });
  expect(deleted.volumes.map(({ name }) => name)).toEqual(['three']);
  expect((await listVolumes(world.deps, stranger, {})).total).toBe(0);
});

it('prices a GB by provider, region and cloud, and lists the regions with volumes [volume-pricing]', async () => {
  const price = (query: object) => readVolumePricing(world.deps, query).hourlyRatePerGb;
  expect(price({ provider: 'provider-d', region: 'ap-tokyo' })).toBe(0.000123);
  expect(price({ provider: 'provider-d' })).toBe(0.000096);
  expect(price({ provider: 'provider-c', region: 'eu-stockholm', cloudId: 'cloud-stockholm-2' })).toBe(
    0.000151,
  );
  expect(() => price({ provider: 'provider-g' })).toThrow(/expected a provider with volumes/);
  expect(() => price({ provider: 'provider-c', cloudId: 'cloud-denver-1' })).toThrow(/region: required/);
  const { hasAnyOffers, regions } = listVolumeRegions(world.deps, { provider: 'provider-c' });
  expect(hasAnyOffers).toBe(true);
  expect(regions.map(({ id, cloudId }) => [id, cloudId])).toEqual([
    ['eu-stockholm', 'cloud-stockholm-1'],
    ['eu-stockholm', 'cloud-stockholm-2'],
    ['us-denver', 'cloud-denver-1'],
  ]);
  const [, , tokyo] = listVolumeRegions(world.deps, { provider: 'provider-d' }).regions;
  expect(tokyo).toMatchObject({
    id: 'ap-tokyo',
    country_code: 'JP',
    types: ['nvme-network'],
    hasGpuOffers: true,
    minSizeGb: 1,
    maxSizeGb: 40_960,
    hourlyRatePerGb: 0.000123,
  });
  expect(() => listVolumeRegions(world.deps, { provider: 'provider-b' })).toThrow(ApiError);
});
