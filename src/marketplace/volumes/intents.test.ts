import { afterEach, beforeEach, expect, it } from 'vitest';
import { newIntent } from '../model/intent.ts';
import { attachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { releaseVolumes } from './release.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

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
const statesOf = async (id = deploymentId) =>
  (await world.deps.store.read.volumes.attachmentsOf({ deploymentId: id })).map(({ state }) => state);
const sync = () => world.settle(world.sync('a'));
const codeOf = (promise: Promise<unknown>) =>
  world.settle(promise).then(
    () => 'done',
    (error: { code?: string }) => error.code ?? String(error),
  );

async function endDeployment(): Promise<void> {
  await world.update(deploymentId, { status: 'terminated', cleanup: 'wanted' });
  await world.deps.store.transact((tx) => releaseVolumes(tx, deploymentId, world.clock.now()));
}

it('a detachment that is asked for again by a server that dies goes on [volume-detach-repeated-unsent]', async () => {
  expect(await codeOf(attachVolume(world.deps, caller, volumeId, deploymentId))).toBe('done');
  await endDeployment();
  // No worker hears of it, and the server that asks is gone before the intent ends.
  const { store } = world.deps;
  await store.transact(async (tx) => {
    const record = await tx.volumes.byVolumeId(volumeId);
    if (record === null) throw new Error('it is not there');
    const { action, ...rest } = record;
    const since = world.clock.now();
    await tx.volumes.update({
      ...rest,
      action: {
        ...newIntent(record, { kind: 'detach', by: caller.userId, since, until: since + 20_000 }),
        deploymentId,
        isRepeated: true,
      },
    });
  });
  await world.clock.advance(30_000);
  for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
  for (let round = 0; round < 5; round++) await sync();
  expect({ states: await statesOf(), ...(await stored()) }).toMatchObject({
    states: [],
    status: 'available',
    action: null,
  });
});

it('a name that is given while a larger size is under way is kept', async () => {
  world.plain('a').faults.plan = (method) => (method === 'resizeVolume' ? 'lose' : 'none');
  expect(await codeOf(updateVolume(world.deps, caller, volumeId, { name: 'first', sizeInGb: 300 }))).toBe(
    'PROVIDER_SLOW',
  );
  expect(await codeOf(updateVolume(world.deps, caller, volumeId, { name: 'second' }))).toBe('done');
  world.plain('a').setVolume(world.plain('a').volumes[0]?.id ?? '', { size_gb: 300 });
  await sync();
  expect(await stored()).toMatchObject({ sizeGb: 300, name: 'second' });
});
