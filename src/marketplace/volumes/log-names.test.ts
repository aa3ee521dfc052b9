import { expect, it } from 'vitest';
import type { ProviderFaultPlan } from '../../../test/support/doubles/provider-faults.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { attachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';

const requestId = 'req-of-the-create';

async function sync({ sync, clock, settle }: World, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    await clock.advance(60_000);
    await settle(sync('a'));
  }
}

const notFound = { error: new ProviderError('not_found', '404') };

it('all lines of a volume share its id, its team and the request that made it, to the proof of its deletion', async () => {
  const world = await openWorld();
  const { deps, settle, logged, plain } = world;
  const { faults } = plain('a');
  const { volumeId } = await settle(createVolume(deps, caller, bodyFor('a') as never, { requestId }));
  const { id: deployment } = await world.deploy('a', 'us-dallas');
  const lost: ProviderFaultPlan = (method) => (method === 'attachVolume' ? 'lose' : 'none');
  faults.plan = lost;
  await settle(attachVolume(deps, caller, volumeId, deployment)).catch(() => undefined);
  faults.plan = (method) => (method === 'getVolume' ? notFound : 'none');
  await sync(world, 1);
  faults.plan = lost;
  await sync(world, 30);
  faults.plan = (method) => (method === 'deleteVolume' ? 'lose' : 'none');
  await settle(deleteVolume(deps, caller, volumeId)).catch(() => undefined);
  await sync(world, 60);
  faults.plan = () => 'none';
  await sync(world, 2);
  expect(await deps.store.read.volumes.byVolumeId(volumeId)).toMatchObject({ status: 'deleted', requestId });
  await world.close();
  const shared = { volume: volumeId, team: 'team-1', request_id: requestId };
  for (const { message, fields } of logged) expect({ message, ...fields }).toMatchObject(shared);
  const lines = new Set(logged.map(({ level, message }) => `${level}: ${message}`));
  expect([...lines].sort()).toEqual([
    'debug: a call about a volume failed',
    'error: a deleted volume may still exist at the provider and cost money: its deletion is retried until the provider confirms it',
    'error: the provider answers 404 for a volume of this marketplace: it is kept and billed; check it at the provider',
    'warn: a volume could not be attached in time: it is given up',
  ]);
});
