import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { grant, intent, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { postDue } from '../ledger/post-due.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';
import { attachVolume, detachVolume, planLaunchVolumes } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { releaseVolumes } from './intents.ts';
import { readVolume } from './read.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

const HOUR_MS = 3_600_000;

let world: World;
let volumeId: string;
beforeEach(async () => {
  world = await openWorld();
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never)));
  await world.clock.advance(HOUR_MS);
});
afterEach(() => world.close());

const stored = () => world.deps.store.read.volumes.byVolumeId(volumeId);
const sync = (letter = 'a') => world.settle(world.sync(letter));
const findings = async () => (await verifyLedger(world.deps.store, world.clock.now() + HOUR_MS)).findings;

it('a deletion is accepted, and ends the billing, where the provider is no longer configured', async () => {
  const providers = { ids: () => [], get: () => undefined };
  const at = world.clock.now();
  await world.settle(deleteVolume({ ...world.deps, providers }, caller, volumeId));
  expect(await stored()).toMatchObject({ status: 'deleting', deletedAt: at, cleanup: 'wanted' });
  expect(world.plain('a').volumes).toHaveLength(1);
  for (let round = 0; round < 2; round++) {
    await world.settle(world.sync('a'));
    await world.clock.advance(60_000);
  }
  expect(world.plain('a').volumes).toEqual([]);
  expect(await stored()).toMatchObject({ status: 'deleted', cleanup: 'done' });
  expect(await findings()).toEqual([]);
});

it('a deletion ends the bill at the last posting, where a process whose clock is ahead has posted further', async () => {
  const [segment] = await world.deps.store.read.ledger.openSegments({ limit: 1 });
  if (segment === undefined) throw new Error('it is billed');
  const { options } = world.deps;
  const everyMinute = { ...options, billing: { ...options.billing, sliceMs: 60_000 } };
  await postDue({ ...world.deps, options: everyMinute }, [segment], world.clock.now() + 10 * 60_000);
  await world.settle(deleteVolume(world.deps, caller, volumeId));
  expect((await stored())?.deletedAt).toBeGreaterThan(world.clock.now());
  expect(await findings()).toEqual([]);
});

/** A worker has written the attempt, and its process crashes before it writes the answer. */
async function askAndDie(how: { isSent: boolean }): Promise<void> {
  const record = await stored();
  if (record === null) throw new Error('there is no volume');
  await world.deps.store.transact((tx) =>
    tx.volumes.update({ ...record, action: intent('delete', { since: world.clock.now() }) }),
  );
  if (how.isSent) await world.plain('a').client.deleteVolume(record.providerVolumeId ?? '');
}

describe('a deletion whose answer was not written', () => {
  it('is not reverted by an observation that still shows the volume, and ends only by proof [volume-delete-needs-proof]', async () => {
    world.plain('a').options.volumeMs = 60_000;
    await askAndDie({ isSent: true });
    await world.settle(readVolume(world.deps, caller, volumeId));
    await sync();
    const acceptedAt = (await stored())?.deletedAt;
    expect(await stored()).toMatchObject({ status: 'deleting', deletedAt: acceptedAt });
    await world.clock.advance(50 * 60_000);
    await sync();
    expect(world.plain('a').volumes).toEqual([]);
    expect(await stored()).toMatchObject({ status: 'deleted', cleanup: 'done', action: null });
    expect(await findings()).toEqual([]);
  });

  it('is sent again where the process died before it sent it', async () => {
    await askAndDie({ isSent: false });
    for (let round = 0; round < 3; round++) {
      await sync();
      await world.clock.advance(60_000);
    }
    expect(world.plain('a').volumes).toEqual([]);
    expect((await stored())?.status).toBe('deleted');
  });

  it('continues where the provider reports the volume as broken in the meantime', async () => {
    world.plain('a').options.volumeMs = 60_000;
    await askAndDie({ isSent: true });
    world.plain('a').setVolume(world.plain('a').volumes[0]?.id ?? '', { status: 'ERROR' });
    await sync();
    expect(await stored()).toMatchObject({ status: 'deleting' });
  });

  it('blocks attachments, resizes and launches while it lasts', async () => {
    const { id } = await world.deploy('a', (await stored())?.region ?? '');
    await askAndDie({ isSent: true });
    await world.clock.advance(2 * world.deps.options.polling.actionMs);
    expect(await world.codeOf(attachVolume(world.deps, caller, volumeId, id))).toBe('CHANGE_IN_PROGRESS');
    expect(await world.codeOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 900 }))).toBe(
      'CHANGE_IN_PROGRESS',
    );
    const { teamId, region = '' } = (await stored()) ?? {};
    const wanted = { caller, teamId: teamId ?? '', region, provider: world.provider('a') };
    const launch = world.deps.store.transact((tx) =>
      planLaunchVolumes(world.deps, tx, { ...wanted, volumeIds: [volumeId] }),
    );
    expect(await world.codeOf(launch)).toBe('CHANGE_IN_PROGRESS');
  });
});

it('a deletion of a volume that the provider shows on a running machine is refused, and the attachment is recorded', async () => {
  const { id, providerInstanceId } = await world.deploy('a', (await stored())?.region ?? '');
  // An attach took effect after the worker had given up on it.
  world.plain('a').attach(world.plain('a').volumes[0]?.id ?? '', [providerInstanceId ?? '']);
  expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('VALIDATION_ERROR');
  expect(world.plain('a').faults.countOf('deleteVolume')).toBe(0);
  await world.clock.advance(5_000);
  await sync();
  expect(world.plain('a').volumes[0]?.attached_instance_ids).toEqual([providerInstanceId]);
  expect(await stored()).toMatchObject({ status: 'attached', action: null });
  expect(await world.codeOf(detachVolume(world.deps, caller, volumeId, id))).toBe('done');
});

it('a deletion that is not sent in time, since the provider does not answer, is withdrawn: nothing changed', async () => {
  const before = await stored();
  world.plain('a').faults.plan = (method) => (method === 'getVolume' ? 'hang' : 'none');
  expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('PROVIDER_REFUSED');
  world.plain('a').faults.plan = () => 'none';
  await world.clock.advance(HOUR_MS);
  expect(world.plain('a').volumes).toHaveLength(1);
  expect(await stored()).toMatchObject({ status: 'available', action: null, deletedAt: before?.deletedAt });
});

it('a deletion of a volume that ended during the request succeeds, and keeps the end [volume-delete-race-ended]', async () => {
  const before = await stored();
  if (before === null) throw new Error('there is no volume');
  const endedAt = world.clock.now();
  await world.deps.store.transact((tx) =>
    tx.volumes.update({ ...before, status: 'deleted', deletedAt: endedAt, providerVolumeId: null }),
  );
  const { read } = world.deps.store;
  const volumes = { ...read.volumes, byVolumeId: async () => before };
  const store = { ...world.deps.store, read: { ...read, volumes } };
  await world.clock.advance(5_000);
  expect(await world.codeOf(deleteVolume({ ...world.deps, store }, caller, volumeId))).toBe('done');
  expect((await stored())?.deletedAt).toBe(endedAt);
});

it('a deletion that is refused while the volume is still being created does not stop its creation [volume-delete-refused-creating]', async () => {
  world.plain('a').options.volumeMs = 120_000;
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never)));
  expect(await stored()).toMatchObject({ status: 'creating', action: { kind: 'create' } });
  await world.clock.advance(world.deps.options.polling.actionMs);
  const limited = new ProviderError('limited', '429: too many', { status: 429 });
  world.plain('a').faults.plan = (method) => (method === 'deleteVolume' ? { error: limited } : 'none');
  expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('PROVIDER_REFUSED');
  await sync();
  expect(await stored()).toMatchObject({ status: 'available', action: null });
});

describe('a deletion of a volume that is still on an instance of an ended deployment', () => {
  let deploymentId: string;
  beforeEach(async () => {
    ({ id: deploymentId } = await world.deploy('a', (await stored())?.region ?? ''));
    await world.settle(attachVolume(world.deps, caller, volumeId, deploymentId));
    await world.update(deploymentId, { status: 'terminated', cleanup: 'wanted' });
    await world.deps.store.transact((tx) => releaseVolumes(tx, deploymentId, world.clock.now()));
  });

  it('continues once the provider has detached it', async () => {
    await world.settle(deleteVolume(world.deps, caller, volumeId));
    expect((await stored())?.status).toBe('deleting');
    await world.clock.advance(5_000);
    for (let round = 0; round < 2; round++) {
      await sync();
      await world.clock.advance(5_000);
    }
    expect(world.plain('a').volumes).toEqual([]);
    expect((await stored())?.status).toBe('deleted');
  });

  it('leaves the detachment to be completed where the provider refuses the deletion [volume-detach-refused]', async () => {
    const refused = new ProviderError('refused', '400: no', { status: 400 });
    world.plain('a').faults.plan = (method) => (method === 'deleteVolume' ? { error: refused } : 'none');
    expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('PROVIDER_REFUSED');
    expect(await stored()).toMatchObject({ status: 'attached', action: null });
    const left = await world.deps.store.read.volumes.attachmentsOf({ deploymentId });
    expect(left).toMatchObject([{ state: 'detaching', intent: { kind: 'detach' } }]);
    world.plain('a').delete(world.plain('a').instances[0]?.id ?? '');
    await world.clock.advance(10_000);
    expect(world.plain('a').instances).toEqual([]);
    await sync();
    expect(await stored()).toMatchObject({ status: 'available', action: null });
  });

  it('is not reverted by a detachment', async () => {
    await askAndDie({ isSent: false });
    expect(await world.codeOf(detachVolume(world.deps, caller, volumeId, deploymentId))).toBe(
      'CHANGE_IN_PROGRESS',
    );
    world.plain('a').delete(world.plain('a').instances[0]?.id ?? '');
    await world.clock.advance(10_000);
    expect(world.plain('a').instances).toEqual([]);
    await sync();
    expect((await stored())?.action).toMatchObject({ kind: 'delete' });
  });
});

describe('an unproved deletion raises an alarm', () => {
  const notProved = () =>
    world.logged.filter(
      ({ level, message }) => level === 'error' && message.includes('may still exist at the provider'),
    );
  const pass = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      await world.clock.advance(60_000);
      await sync();
    }
  };

  it.each([
    ['takes it, and keeps the volume', 'deleteVolume', { instead: true }, 'the provider still has it'],
    ['does not answer', 'getVolume', 'refuse', 'unreachable: getVolume: ECONNREFUSED'],
  ] as const)('where its provider %s', async (_name, failing, fault, reason) => {
    // The volume is read once before it is deleted.
    world.plain('a').faults.plan = (method, nth) =>
      method === failing && (method === 'deleteVolume' || nth > reads + 1) ? fault : 'none';
    const reads = world.plain('a').faults.countOf('getVolume');
    await world.settle(deleteVolume(world.deps, caller, volumeId));
    await pass(10);
    expect(notProved()).toEqual([]);
    await pass(60);
    expect(notProved().length).toBeGreaterThan(1);
    expect(notProved().length).toBeLessThan(8);
    expect(notProved()[0]?.fields).toMatchObject({ volume: volumeId, provider: 'provider-a', reason });
  });
});

describe('a deletion of a volume that two rows have', () => {
  const second = 'vol-second';
  /** As a restored database may have it. */
  beforeEach(async () => {
    const { providerId, providerVolumeId, region } = await known();
    const row = volume({ id: second, volumeId: second, teamId: 'team-2', userId: 'usr-2' });
    await world.deps.store.transact(async (tx) => {
      await grant(tx, 1_000_000, row.teamId);
      await tx.volumes.insert({ ...row, providerId, providerVolumeId, region });
    });
  });

  const known = async () => {
    const record = await stored();
    if (record === null) throw new Error('there is no volume');
    return record;
  };
  const other = () => world.deps.store.read.volumes.byVolumeId(second);
  const kept = () =>
    world.logged.filter(({ message }) =>
      message.includes('not deleting a volume that belongs to another record'),
    );
  const rounds = async () => {
    for (let round = 0; round < 3; round++) {
      await world.clock.advance(10_000);
      await sync();
    }
  };

  it('ends only this row, with an alarm; the provider deletes the volume for the last row [shared-volume-deleted]', async () => {
    const deployment = await world.deploy('a', 'us-dallas', { teamId: 'team-2' });
    const stranger = { userId: 'usr-2' };
    await world.settle(attachVolume(world.deps, stranger, second, deployment.id));
    expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('done');
    await rounds();
    expect(await stored()).toMatchObject({ status: 'deleted', cleanup: 'done', action: null });
    expect(await other()).toMatchObject({ status: 'attached' });
    expect(world.plain('a').volumes).toMatchObject([{ status: 'ATTACHED' }]);
    expect(kept()).toMatchObject([{ level: 'error', fields: { volume: volumeId, holder: second } }]);
    expect((await findings()).filter(({ id }) => id === volumeId)).toEqual([]);

    await world.settle(detachVolume(world.deps, stranger, second, deployment.id));
    expect(await world.codeOf(deleteVolume(world.deps, stranger, second))).toBe('done');
    await rounds();
    expect([(await other())?.cleanup, world.plain('a').volumes]).toEqual(['done', []]);
  });

  it('is sent to the provider where both rows are deleted at the same moment', async () => {
    const { store } = world.deps;
    for (const record of [await stored(), await other()])
      await store.transact(async (tx) => {
        const change = { status: 'deleting', cleanup: 'wanted', deletedAt: world.clock.now() } as const;
        if (record !== null) await tx.volumes.update({ ...record, ...change });
      });
    await rounds();
    for (const record of [await stored(), await other()])
      expect(record).toMatchObject({ status: 'deleted', cleanup: 'done' });
    expect([world.plain('a').volumes, kept().length]).toEqual([[], 1]);
  });
});
