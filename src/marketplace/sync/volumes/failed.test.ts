import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../../client/orchestrator-client.ts';
import { verifyLedger } from '../../ledger/verify-ledger.ts';
import { createVolume } from '../../volumes/create.ts';
import { deleteVolume } from '../../volumes/delete.ts';
import { bodyFor, caller, openWorld, type World } from '../../volumes/seven-providers.fixture.ts';
import { updateVolume } from '../../volumes/update.ts';

const HOUR_MS = 3_600_000;

let world: World;
let volumeId: string;

beforeEach(async () => {
  world = await openWorld();
  ({ volumeId } = await world.settle(createVolume(world.deps, caller, bodyFor('a') as never)));
  world.plain('a').setVolume(theirs(), { status: 'ERROR' });
  await world.settle(updateVolume(world.deps, caller, volumeId, { sizeInGb: 200 }).catch(() => undefined));
  expect((await stored())?.status).toBe('error');
});
afterEach(() => world.close());

function deny(): void {
  const gone = new ProviderError('not_found', '404', { status: 404 });
  world.plain('a').faults.plan = (method) => (method === 'getVolume' ? { error: gone } : 'none');
}

const theirs = () => world.plain('a').volumes[0]?.id ?? '';
const stored = () => world.deps.store.read.volumes.byVolumeId(volumeId);
const endFailed = () => world.settle(world.sync('a'));
const open = async () => (await world.deps.store.read.ledger.openSegments({ limit: 10 })).length;
const findings = async () => (await verifyLedger(world.deps.store, world.clock.now() + HOUR_MS)).findings;

it('a broken volume that the provider has is billed as before', async () => {
  await endFailed();
  expect(await stored()).toMatchObject({ status: 'error', deletedAt: null });
  expect(await open()).toBe(1);
});

it('a broken volume that the provider no longer has costs nothing from then on, and stays in error', async () => {
  deny();
  const at = world.clock.now();
  await endFailed();
  expect(await stored()).toMatchObject({ status: 'error', deletedAt: at });
  await world.clock.advance(HOUR_MS);
  await endFailed();
  expect(await stored()).toMatchObject({ status: 'error', deletedAt: at });
  expect([await open(), await findings()]).toEqual([0, []]);
});

it.each(['timeout', 'failed', 'unauthorized'] as const)(
  'a broken volume stays billed where the provider gives no answer: %s',
  async (problem) => {
    world.plain('a').faults.plan = (method) =>
      method === 'getVolume' ? { error: new ProviderError(problem, problem) } : 'none';
    await endFailed();
    expect([(await stored())?.deletedAt, await open()]).toEqual([null, 1]);
  },
);

it('a broken volume keeps the end of its bill when its user deletes it later', async () => {
  deny();
  const at = world.clock.now();
  await endFailed();
  await world.clock.advance(HOUR_MS);
  await world.settle(deleteVolume(world.deps, caller, volumeId));
  expect(await stored()).toMatchObject({ status: 'deleted', deletedAt: at });
  expect(await findings()).toEqual([]);
});
