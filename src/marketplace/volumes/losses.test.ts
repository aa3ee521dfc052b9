import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { acceptLosses, countLosses } from '../providers/loss-cap.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';

const VOLUMES = 9;
const CAP = 5;

let world: World;
let volumeIds: string[];
beforeEach(async () => {
  world = await openWorld();
  volumeIds = [];
  for (let number = 1; number <= VOLUMES; number++) {
    const body = { ...bodyFor('a'), name: `data-${number}`, sizeInGb: 10 };
    volumeIds.push((await world.settle(createVolume(world.deps, caller, body as never))).volumeId);
  }
});
afterEach(() => world.close());

/** The provider answers as for another account's key. The client treats a 404 as a completed deletion. */
function denyAll(): void {
  const gone = new ProviderError('not_found', '404', { status: 404 });
  world.plain('a').faults.plan = (method) => {
    if (method === 'getVolume') return { error: gone };
    return method === 'deleteVolume' ? { instead: false } : 'none';
  };
}

const deleteAll = async () => {
  for (const id of volumeIds) await world.settle(deleteVolume(world.deps, caller, id));
};
const sync = async () => {
  for (let round = 0; round < 3; round++) {
    await world.settle(world.sync('a'));
    await world.clock.advance(5_000);
  }
};
const statuses = async () => {
  const records = await Promise.all(volumeIds.map((id) => world.deps.store.read.volumes.byVolumeId(id)));
  return Object.entries(Object.groupBy(records, (record) => record?.status ?? 'none')).map(
    ([status, group]) => [status, group?.length],
  );
};
const losses = () =>
  countLosses(world.deps.store.read, 'provider-a', world.deps.options.maxLosses, world.clock.now());

it('volumes that their provider deletes do not count as losses, however many', async () => {
  await deleteAll();
  await sync();
  expect([await statuses(), world.plain('a').volumes]).toEqual([[['deleted', VOLUMES]], []]);
  expect(await losses()).toMatchObject({ count: 0, held: 0 });
});

describe('a provider that answers 404 for every volume', () => {
  beforeEach(async () => {
    denyAll();
    await deleteAll();
    await sync();
  });

  it('ends the deletion of no more volumes than the cap: the others are not considered gone, and are deleted when it lists them again', async () => {
    expect((await statuses()).sort()).toEqual([
      ['deleted', CAP],
      ['deleting', VOLUMES - CAP],
    ]);
    expect(await losses()).toMatchObject({ count: CAP, held: VOLUMES - CAP });
    expect(world.logged.filter(({ message }) => message.includes('losses accept provider-a'))).toHaveLength(
      1,
    );
    expect(world.plain('a').volumes).toHaveLength(VOLUMES);
    world.plain('a').faults.plan = () => 'none';
    await sync();
    expect(await statuses()).toEqual([['deleted', VOLUMES]]);
    expect([(await losses()).held, world.plain('a').volumes.length]).toEqual([0, CAP]);
  });

  it('ends all once an operator accepts', async () => {
    await acceptLosses(world.deps, 'provider-a', world.clock.now() + 60_000);
    await sync();
    expect(await statuses()).toEqual([['deleted', VOLUMES]]);
  });
});
