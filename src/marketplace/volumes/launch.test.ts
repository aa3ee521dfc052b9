import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { launchWith, makeVolume, openWorld, type World } from './seven-providers.fixture.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

it('an attachment of the launch is given up in time where the deployment was stopped first [attach-while-stopped]', async () => {
  const { volumeId } = await makeVolume(world, 'a');
  const { id } = await launchWith(world, 'a', [volumeId]);
  const volume = () => world.deps.store.read.volumes.byVolumeId(volumeId);
  await world.update(id, { status: 'stopped', startedAt: world.clock.now(), stoppedAt: world.clock.now() });
  await world.settle(world.sync('a'));
  const attachments = () => world.deps.store.read.volumes.attachmentsOf({ deploymentId: id });
  expect(await volume()).toMatchObject({ status: 'attached' });
  expect(await attachments()).toMatchObject([{ intent: { kind: 'attach' } }]);
  await world.clock.advance(world.deps.options.polling.actionMs);
  await world.settle(world.sync('a'));
  expect(await volume()).toMatchObject({ status: 'available' });
  expect(await attachments()).toEqual([]);
});

it.each([
  ['429', new ProviderError('limited', '429', { status: 429 })],
  ['a connection that is refused', new ProviderError('unreachable', 'ECONNREFUSED')],
  [
    'operation_in_progress',
    new ProviderError('conflict', '409', { status: 409, code: 'operation_in_progress' }),
  ],
])('an attachment of the launch is tried again after %s [launch-attach-repeated]', async (_, error) => {
  const { volumeId } = await makeVolume(world, 'a');
  const { id } = await launchWith(world, 'a', [volumeId]);
  await world.update(id, { status: 'running', startedAt: world.clock.now() });
  const { faults } = world.plain('a');
  faults.plan = (method, nth) => (method === 'attachVolume' && nth === 1 ? { error } : 'none');
  for (let turn = 0; turn < 3; turn++) {
    await world.settle(world.sync('a'));
    await world.clock.advance(60_000);
  }
  const [attachment] = await world.deps.store.read.volumes.attachmentsOf({ deploymentId: id });
  expect(attachment?.state).toBe('attached');
});
