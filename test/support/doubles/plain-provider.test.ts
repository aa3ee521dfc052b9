import { expect, it } from 'vitest';
import type { ProviderError } from '../../../src/client/orchestrator-client.ts';
import { VirtualClock } from '../time/virtual-clock.ts';
import { PlainProvider } from './plain-provider.ts';

const request = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['ssh-ed25519 AAAA'], name: 'bm-x' };

it('keeps O: from a create to the 404', async () => {
  const clock = new VirtualClock();
  const { client } = new PlainProvider(clock, { bootMs: 1_000, stopMs: 500, startMs: 500, deleteMs: 500 });
  const { id } = await client.createInstance(request, 'k');
  const status = async () => (await client.getInstance(id, 'eu-one')).status;
  expect(await status()).toBe('PROVISIONING');
  await clock.advance(1_000);
  expect(await status()).toBe('ONLINE');
  expect((await client.stopInstance(id, 'eu-one')).status).toBe('STOPPING');
  await clock.advance(500);
  expect(await status()).toBe('STOPPED');
  await client.startInstance(id, 'eu-one');
  expect(await status()).toBe('STOPPED');
  await clock.advance(500);
  expect(await status()).toBe('ONLINE');
  expect((await client.deleteInstance(id, 'eu-one'))?.status).toBe('DESTROYING');
  await clock.advance(500);
  await expect(status()).rejects.toMatchObject({ problem: 'not_found' });
  expect(await client.deleteInstance(id, 'eu-one')).toBeNull();
  expect(clock.pendingTimers).toBe(0);
});

it('suffixes a name that is taken, and refuses what exceeds its capacity', async () => {
  const { client, instances } = new PlainProvider(new VirtualClock(), { capacity: 2 });
  expect(instances).toEqual([]);
  expect((await client.createInstance(request, 'a')).name).toBe('bm-x');
  expect((await client.createInstance(request, 'b')).name).toBe('bm-x-2');
  await expect(client.createInstance(request, 'c')).rejects.toMatchObject({ code: 'capacity_unavailable' });
  expect((await client.listAvailability('eu-one')).map(({ id }) => id)).not.toContain('gpu-1');
});

it('loses, delays and refuses what the plan says', async () => {
  const clock = new VirtualClock();
  const provider = new PlainProvider(clock);
  const plan = ['commit-then-lose', 'lose', 'refuse', 'hang', { lateMs: 60_000 }] as const;
  provider.faults.plan = (_method, nth) => plan[nth - 1] ?? 'none';
  const outcomes: unknown[] = [];
  for (const _ of plan) {
    const call = provider.client.createInstance(request, 'k', { timeoutMs: 5_000 });
    call.catch((error: ProviderError) =>
      outcomes.push([error.problem, error.mayHaveHappened, provider.instances.length]),
    );
    await clock.advance(5_000);
  }
  expect(outcomes).toEqual([
    ['timeout', true, 1],
    ['timeout', true, 1],
    ['unreachable', false, 1],
    ['timeout', true, 1],
    ['timeout', true, 1],
  ]);
  await clock.advance(60_000);
  expect(provider.instances).toHaveLength(2);
});

it('keeps volumes, and lets them go with their instance', async () => {
  const provider = new PlainProvider(new VirtualClock());
  const { client } = provider;
  const { id } = await client.createInstance(request, 'k');
  const volume = await client.createVolume({ name: 'data', size_gb: 10, region: 'eu-one' }, 'v');
  expect(volume.status).toBe('AVAILABLE');
  expect(await client.attachVolume(volume.id, [id])).toMatchObject({
    status: 'ATTACHED',
    attached_instance_ids: [id],
  });
  await expect(client.deleteVolume(volume.id)).rejects.toMatchObject({ status: 409 });
  expect((await client.resizeVolume(volume.id, 20)).size_gb).toBe(20);
  provider.vanish(id);
  expect((await client.getVolume(volume.id)).status).toBe('AVAILABLE');
  await client.deleteVolume(volume.id);
  await expect(client.getVolume(volume.id)).rejects.toMatchObject({ problem: 'not_found' });
});

it('makes no instance where it refuses a volume of the request [volume-refused-makes-nothing]', async () => {
  const provider = new PlainProvider(new VirtualClock());
  const wanted = { ...request, volume_ids: ['v-none'] };
  await expect(provider.client.createInstance(wanted, 'k')).rejects.toMatchObject({ problem: 'not_found' });
  expect(provider.instances).toEqual([]);
});
