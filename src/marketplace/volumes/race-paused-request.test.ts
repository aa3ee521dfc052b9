import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { attachVolume, detachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { deleteVolume } from './delete.ts';
import { bodyFor, caller, openWorld, type World } from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

const busy = new ProviderError('conflict', '409: the volume is being changed', {
  status: 409,
  code: 'operation_in_progress',
});

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
const states = async () =>
  (await world.deps.store.read.volumes.attachmentsOf({ deploymentId })).map(({ state }) => state);
const sync = () => world.settle(world.sync('a'));
const truly = () => world.plain('a').volumes[0]?.attached_instance_ids ?? [];

/** Pauses the worker between its commit and its call to the provider, while `meanwhile` runs elsewhere. */
function pauseBefore(
  method: 'attachVolume' | 'detachVolume',
  meanwhile: () => Promise<void>,
  error: ProviderError,
): void {
  const { client } = world.provider('a');
  vi.spyOn(client, method).mockImplementationOnce(async () => {
    await meanwhile();
    // The provider is still processing the other server's call: O: `operation_in_progress`.
    throw error;
  });
}

/** Another server holds the provider's lease and sends the intent that seems unsent. */
function sentElsewhere(method: 'attachVolume' | 'detachVolume', error: ProviderError): void {
  world.plain('a').options.volumeMs = 30_000;
  pauseBefore(
    method,
    async () => {
      await world.clock.advance(20_000);
      await world.anotherWorker('a').syncVolumes();
      expect(await states()).toEqual([method === 'attachVolume' ? 'attaching' : 'detaching']);
    },
    error,
  );
}

async function rest(): Promise<void> {
  await world.clock.advance(10 * 60_000);
  for (let round = 0; round < 5; round++) await sync();
}

/** At rest, the provider and the marketplace must agree. */
const atRest = async () => [truly().length, await states(), (await stored())?.status];

it.each([
  ['a refusal of', busy],
  // After a pause, the process's connections are closed, and the first new one fails.
  ['a broken connection of', new ProviderError('unreachable', 'connect ECONNREFUSED')],
])(
  'V1: an attach that another server has sent meanwhile is not undone by %s a suspended request',
  async (_, error) => {
    sentElsewhere('attachVolume', error);
    await world.codeOf(attachVolume(world.deps, caller, volumeId, deploymentId));
    await rest();
    expect(await atRest()).toEqual([1, ['attached'], 'attached']);
    // V3: a volume attached to a running machine is not deleted as if it were unattached.
    expect(await world.codeOf(deleteVolume(world.deps, caller, volumeId))).toBe('VALIDATION_ERROR');
    expect(world.plain('a').volumes[0]?.status).toBe('ATTACHED');
  },
);

it('V2: a detach is not undone either: a volume that the provider has detached does not stay attached', async () => {
  expect(await world.codeOf(attachVolume(world.deps, caller, volumeId, deploymentId))).toBe('done');
  sentElsewhere('detachVolume', busy);
  await world.codeOf(detachVolume(world.deps, caller, volumeId, deploymentId));
  await rest();
  expect(await atRest()).toEqual([0, [], 'available']);
});

it('V4: a resize sent after it was given up leaves no volume larger than the billed one', async () => {
  const { client } = world.provider('a');
  const resizeVolume = client.resizeVolume.bind(client);
  vi.spyOn(client, 'resizeVolume').mockImplementationOnce(async (...call) => {
    // The process is paused (a suspended VM, SIGSTOP) and then continues.
    await world.clock.advance(world.deps.options.polling.actionMs + 1_000);
    await world.anotherWorker('a').syncVolumes();
    expect((await stored())?.action).toBeNull();
    return resizeVolume(...call);
  });
  await world.codeOf(updateVolume(world.deps, caller, volumeId, { sizeInGb: 300 } as never));
  await rest();
  expect([world.plain('a').volumes[0]?.size_gb, (await stored())?.sizeGb]).toEqual([300, 300]);
});
