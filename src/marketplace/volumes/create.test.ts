import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { discount } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import { toTimestamp } from '../contract/values.ts';
import { volumeSchema } from '../contract/volume.ts';
import { withAttempt } from '../model/intent.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { bodyFor, caller, makeVolume, openWorld, type World } from './seven-providers.fixture.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const HOUR = 3_600_000;

const create = (letter: string, changes = {}) => makeVolume(world, letter, changes);
const sync = (letter: string) => world.settle(world.sync(letter));
const segments = (id: string) => world.deps.store.read.ledger.segmentsOf('volume', id);
const deployment = (id: string) => world.deps.store.read.deployments.byId(id);
const only = async () => (await world.volumes())[0];

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await world.settle(promise).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe('a create', () => {
  it('answers with an available volume as M: shows it, with the mount address of provider-a [volume-create]', async () => {
    const volume = volumeSchema.strict().parse(await create('a'));
    const id = world.plain('a').volumes[0]?.id;
    expect(volume).toMatchObject({
      status: 'available',
      sizeInGb: 100,
      hourlyRate: 0.0274,
      originalHourlyRate: 0.0274,
      virtualIp: '10.40.0.10',
      nfsEndpoint: 'nfs.us-dallas.provider-a.example',
      nfsPseudopath: `/volumes/${id}`,
      mountCommand: `sudo mount -t nfs -o nconnect=16,vers=4.1 nfs.us-dallas.provider-a.example:/volumes/${id} /mnt/${id}`,
    });
  });

  it('omits unknown fields: M: has no null for them', async () => {
    expect(Object.entries(await create('d')).filter(([, value]) => value === null)).toEqual([]);
    expect(await create('d')).not.toHaveProperty('usedCapacityBytes');
  });

  it('sends the type of provider-d, and the cloud of provider-c at its price [volume-type-and-cloud]', async () => {
    expect((await create('d')).extras).toEqual({ volumeType: 'nvme-network' });
    expect(world.plain('d').volumes[0]?.type).toBe('nvme-network');
    const inCloud = await create('c');
    expect(inCloud.extras).toEqual({ cloudId: 'cloud-stockholm-2', cloudName: 'Stockholm Sky' });
    expect(inCloud.hourlyRate).toBe(0.0151);
    expect(world.plain('c').volumes[0]?.type).toBe('sky');
  });

  it('locks the discount of that moment in, and bills from when it was first available [volume-discount-locked]', async () => {
    await world.deps.store.transact((tx) =>
      tx.discounts.insert(discount({ percentage: 20, endsAt: world.clock.now() + HOUR })),
    );
    const volume = await create('e');
    expect(volume).toMatchObject({ hourlyRate: 0.0088, originalHourlyRate: 0.011 });
    const record = await only();
    expect(record?.discountEndsAt).toBeGreaterThan(world.clock.now());
    expect(await segments(volume.id)).toMatchObject([
      { state: 'stored', rateMicroUsdPerHour: 8_800, startedAt: record?.startedAt, endedAt: null },
    ]);
    expect(record?.startedAt).toBeGreaterThan(record?.createdAt ?? 0);
    expect(volume.startedAt).toBe(toTimestamp(record?.startedAt ?? 0));
  });

  it('is counted and billed from the same moment, although the clock advances in between', async () => {
    world.clock.msPerReading = 1;
    await world.settle(createVolume(world.deps, caller, bodyFor('a')));
    const record = await only();
    expect(record?.startedAt).not.toBeNull();
    expect((await segments(record?.id ?? ''))[0]?.startedAt).toBe(record?.startedAt);
  });

  it('on a deployment answers once it is attached, and releases the deployment [volume-create-attached]', async () => {
    const { id } = await world.deploy('e', 'eu-frankfurt');
    const volume = await create('e', { deploymentId: id });
    expect(volume).toMatchObject({ status: 'attached', attachedToDeploymentIds: [id] });
    expect((await deployment(id))?.action).toBeNull();
  });

  it('whose volume breaks is 502 and costs nothing; the volume can be deleted [volume-create-broken]', async () => {
    world.plain('a').faults.plan = (method) =>
      method === 'getVolume' ? { answer: (it) => ({ ...it, status: 'ERROR' }) } : 'none';
    expect((await failure(createVolume(world.deps, caller, bodyFor('a')))).status).toBe(502);
    const record = await only();
    expect(record).toMatchObject({ status: 'error', startedAt: null });
    world.plain('a').faults.plan = () => 'none';
    await world.settle(deleteVolume(world.deps, caller, record?.volumeId ?? ''));
    await world.clock.advance(5_000);
    await sync('a');
    expect((await only())?.status).toBe('deleted');
    expect(world.plain('a').volumes).toEqual([]);
  });

  it('whose answer is lost is sent again with the same key where the provider supports idempotency keys', async () => {
    const keys = (): unknown[] =>
      world.plain('a').faults.calls.flatMap(({ method, args }) => (method === 'createVolume' ? [args] : []));
    world.plain('a').faults.plan = (method, nth) =>
      method === 'createVolume' && nth === 1 ? 'lose' : 'none';
    expect((await create('a')).status).toBe('available');
    expect(keys()).toHaveLength(2);
    expect(keys()[1]).toEqual(keys()[0]);
  });

  const fromAnotherProcess = async (): Promise<void> => {
    const { id } = (await only()) as VolumeRecord;
    await world.deps.store.transact(async (tx) => {
      const current = (await tx.volumes.byId(id)) as VolumeRecord;
      const action = current.action && withAttempt(current.action, (current.action.sentAt ?? 0) + 1);
      await tx.volumes.update({ ...current, action });
    });
  };

  it('that is refused after another process has resent it is left to that process [volume-create-refused-late]', async () => {
    const { client } = world.provider('a');
    vi.spyOn(client, 'createVolume').mockImplementationOnce(async () => {
      await fromAnotherProcess();
      throw new ProviderError('unauthorized', '401', { status: 401 });
    });
    expect((await create('a')).status).toBe('available');
    expect(world.plain('a').volumes).toHaveLength(1);
  });

  it('that is not answered after another process has resent it is left to that process [volume-create-lost-late]', async () => {
    for (const offer of world.provider('a').catalog.offers.values()) Object.assign(offer, { extras: {} });
    const { client } = world.provider('a');
    vi.spyOn(client, 'createVolume').mockImplementationOnce(async () => {
      await fromAnotherProcess();
      throw new ProviderError('timeout', 'no answer', { mayHaveHappened: true });
    });
    expect((await create('a')).status).toBe('creating');
    expect(await only()).toMatchObject({ status: 'creating', action: { kind: 'create' } });
  });

  it('whose answer is lost waits for the catalog in a process that has just started [volume-create-waits-for-catalog]', async () => {
    world.plain('a').faults.plan = (method) => (method === 'createVolume' ? 'commit-then-lose' : 'none');
    await world.settle(createVolume(world.deps, caller, bodyFor('a')));
    const { catalog } = world.provider('a');
    const { refreshedAt, offers } = catalog;
    Object.assign(catalog, { refreshedAt: null, offers: new Map() });
    await world.clock.advance(60_000);
    await sync('a');
    expect((await only())?.status).toBe('creating');
    Object.assign(catalog, { refreshedAt, offers });
    world.plain('a').faults.plan = () => 'none';
    await sync('a');
    expect((await only())?.providerVolumeId).not.toBeNull();
  });

  it('is not given up where its answer is lost before the catalog is known [volume-create-catalog-unknown]', async () => {
    const { catalog } = world.provider('a');
    const { refreshedAt, offers } = catalog;
    world.plain('a').faults.plan = (method) => {
      if (method !== 'createVolume') return 'none';
      // Simulates a worker in another process that has just started.
      Object.assign(catalog, { refreshedAt: null, offers: new Map() });
      return 'commit-then-lose';
    };
    expect((await create('a')).status).toBe('creating');
    Object.assign(catalog, { refreshedAt, offers });
    world.plain('a').faults.plan = () => 'none';
    await sync('a');
    expect((await only())?.providerVolumeId).not.toBeNull();
  });

  it('whose answer is lost is not resent to a provider without keys: an alarm is logged, and nothing is billed', async () => {
    for (const offer of world.provider('a').catalog.offers.values()) Object.assign(offer, { extras: {} });
    world.plain('a').faults.plan = (method) => (method === 'createVolume' ? 'commit-then-lose' : 'none');
    expect((await failure(createVolume(world.deps, caller, bodyFor('a')))).status).toBe(502);
    const record = await only();
    expect(record).toMatchObject({ status: 'error', startedAt: null, action: null });
    expect(world.writes()).toEqual(['createVolume']);
    expect(world.logged.filter(({ level }) => level === 'error')).toHaveLength(1);
    await world.settle(deleteVolume(world.deps, caller, record?.volumeId ?? ''));
    expect((await only())?.status).toBe('deleted');
  });

  it('that takes longer than a request may wait answers `creating`, and is billed once it is there [volume-create-slow]', async () => {
    world.plain('a').options.volumeMs = 60_000;
    const volume = await create('a');
    expect(volume.status).toBe('creating');
    expect(await segments(volume.id)).toEqual([]);
    await world.clock.advance(60_000);
    await sync('a');
    expect(await segments(volume.id)).toHaveLength(1);
    expect(await only()).toMatchObject({ status: 'available', action: null });
  });
});
