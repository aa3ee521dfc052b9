import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { newIntent } from '../model/intent.ts';
import { attachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { putIntent, releaseVolumes } from './intents.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

const MINUTE_MS = 60_000;

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

it('a detachment continues after a server died while it repeated the request [volume-detach-repeated-unsent]', async () => {
  expect(await codeOf(attachVolume(world.deps, caller, volumeId, deploymentId))).toBe('done');
  await endDeployment();
  // No worker is notified, and the requesting server is gone before the intent expires.
  const { store } = world.deps;
  await store.transact(async (tx) => {
    const record = await tx.volumes.byVolumeId(volumeId);
    if (record === null) throw new Error('it is not there');
    const since = world.clock.now();
    await putIntent(tx, record, {
      ...newIntent(record, { kind: 'detach', by: caller.userId, since, until: since + 20_000 }),
      deploymentId,
      attempt: 1,
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

it('a rename during a resize is kept', async () => {
  world.plain('a').faults.plan = (method) => (method === 'resizeVolume' ? 'lose' : 'none');
  expect(await codeOf(updateVolume(world.deps, caller, volumeId, { name: 'first', sizeInGb: 300 }))).toBe(
    'PROVIDER_SLOW',
  );
  expect(await codeOf(updateVolume(world.deps, caller, volumeId, { name: 'second' }))).toBe('done');
  world.plain('a').setVolume(world.plain('a').volumes[0]?.id ?? '', { size_gb: 300 });
  await sync();
  expect(await stored()).toMatchObject({ sizeGb: 300, name: 'second' });
});

it('an attachment of a shared volume with a late answer is not undone because another of its machines ends', async () => {
  expect(await codeOf(attachVolume(world.deps, caller, volumeId, deploymentId))).toBe('done');
  const limited = new ProviderError('limited', '429: too many', { status: 429 });
  const second = await world.deploy('a', (await stored())?.region ?? '');
  const { plan } = world.plain('a').faults;
  const before = world.plain('a').faults.countOf('attachVolume');
  world.plain('a').faults.plan = (method, nth) => {
    if (method !== 'attachVolume') return 'none';
    return nth === before + 1 ? { lateMs: 40_000 } : { error: limited };
  };
  const asked = codeOf(attachVolume(world.deps, caller, volumeId, second.id));
  await world.clock.advance(1_000);
  await endDeployment();
  expect(await asked).toBe('PROVIDER_SLOW');
  await world.clock.advance(60_000);
  world.plain('a').faults.plan = plan;
  await sync();
  expect(await statesOf(second.id)).toEqual(['attached']);
});

it('a withdrawn attachment of a shared volume does not drop the detachment of another machine [volume-withdrawn-beside-detach]', async () => {
  expect(await codeOf(attachVolume(world.deps, caller, volumeId, deploymentId))).toBe('done');
  const down = new ProviderError('timeout', 'no answer');
  world.plain('a').faults.plan = () => ({ error: down });
  await endDeployment();
  await world.clock.advance(16 * MINUTE_MS);
  const second = await world.deploy('a', (await stored())?.region ?? '');
  // No worker sends this intent.
  const { clock } = world;
  await world.deps.store.transact(async (tx) => {
    const record = await tx.volumes.byVolumeId(volumeId);
    if (record === null) throw new Error('it is not there');
    const since = clock.now();
    const asked = { kind: 'attach', by: caller.userId, since, until: since + 20_000 } as const;
    await putIntent(tx, record, { ...newIntent(record, asked), deploymentId: second.id });
  });
  await clock.advance(30_000);
  await sync();
  expect(await statesOf(second.id)).toEqual([]);
  world.plain('a').faults.plan = () => 'none';
  for (const instance of world.plain('a').instances) world.plain('a').vanish(instance.id);
  await world.update(deploymentId, { cleanup: 'done' });
  await clock.advance(MINUTE_MS);
  await sync();
  expect({ states: await statesOf(), ...(await stored()) }).toMatchObject({
    states: [],
    status: 'available',
    action: null,
  });
});

it('a request that reads the row only after the next intent was written gets its own refusal', async () => {
  const { store } = world.deps;
  const { promise, resolve: open } = Promise.withResolvers<void>();
  const byId = (id: string) => promise.then(() => store.read.volumes.byId(id));
  const read = { ...store.read, volumes: { ...store.read.volumes, byId } };
  const refusal = new ProviderError('conflict', '409', { status: 409, code: 'operation_in_progress' });
  world.plain('a').faults.plan = (method) =>
    method === 'attachVolume' ? { error: refusal } : method === 'deleteVolume' ? 'hang' : 'none';
  const deps = { ...world.deps, store: { ...store, read } };
  const attaching = attachVolume(deps, caller, volumeId, deploymentId);
  attaching.catch(() => undefined);
  await world.clock.advance(1_000);
  deleteVolume(world.deps, caller, volumeId).catch(() => undefined);
  await world.clock.advance(1_000);
  expect((await stored())?.action).toMatchObject({ kind: 'delete' });
  open();
  expect(await codeOf(attaching)).toBe('CHANGE_IN_PROGRESS');
});
