import { expect, it } from 'vitest';
import { VirtualClock } from '../time/virtual-clock.ts';
import { PlainProvider } from './plain-provider.ts';

const request = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['ssh-ed25519 AAAA'], name: 'bm-x' };

it('makes no instance where it refuses a volume of the request [volume-refused-makes-nothing]', async () => {
  const provider = new PlainProvider(new VirtualClock());
  const wanted = { ...request, volume_ids: ['v-none'] };
  await expect(provider.client.createInstance(wanted, 'k')).rejects.toMatchObject({ problem: 'not_found' });
  expect(provider.instances).toEqual([]);
});
