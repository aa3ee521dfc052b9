import { afterEach, beforeEach, expect, it } from 'vitest';
import { accrue } from '../ledger/accrue.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { tendVolumes } from './tend.ts';

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
const findings = async () => (await verifyLedger(world.deps.store, world.clock.now() + HOUR_MS)).findings;

it('is accepted, and ends the cost, where the configuration does not have the provider any more', async () => {
  const providers = { ids: () => [], get: () => undefined };
  const at = world.clock.now();
  await world.settle(deleteVolume({ ...world.deps, providers }, caller, volumeId));
  expect(await stored()).toMatchObject({ status: 'deleting', deletedAt: at, cleanup: 'wanted' });
  expect(world.plain('a').volumes).toHaveLength(1);
  for (let round = 0; round < 2; round++) {
    await world.settle(tendVolumes(world.deps, world.provider('a')));
    await world.clock.advance(60_000);
  }
  expect(world.plain('a').volumes).toEqual([]);
  expect(await stored()).toMatchObject({ status: 'deleted', cleanup: 'done' });
  expect(await findings()).toEqual([]);
});

it('ends where billing got to, where a process with a clock that is ahead has posted more', async () => {
  const [segment] = await world.deps.store.read.ledger.openSegments({ limit: 1 });
  if (segment === undefined) throw new Error('it is billed');
  await accrue(world.deps, segment, world.clock.now() + 10 * 60_000);
  await world.settle(deleteVolume(world.deps, caller, volumeId));
  expect((await stored())?.deletedAt).toBeGreaterThan(world.clock.now());
  expect(await findings()).toEqual([]);
});
