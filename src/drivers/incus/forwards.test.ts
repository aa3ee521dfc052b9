import { expect, it } from 'vitest';
import type { Forward, ForwardPort, IncusApi, Instance } from './api.ts';
import { Forwards } from './forwards.ts';
import { incusOfferSchema } from './options.ts';
import { forwardMark } from './translate.ts';

const port = (ref: string, listen: number, address: string): ForwardPort => ({
  description: forwardMark(ref),
  protocol: 'tcp',
  listen_port: String(listen),
  target_port: '22',
  target_address: address,
});

it('ports of another Berth on the network stay; one that led to an address before us goes', async () => {
  const other = port('berth-in-another-project', 22_001, '10.0.0.9');
  const stale = port('berth-ended', 22_002, '10.0.0.5');
  const forward: Forward = {
    listen_address: '192.0.2.1',
    description: 'ports of machines of Berth',
    config: {},
    location: 'none',
    ports: [other, stale],
  };
  const api = {
    forwards: async () => [forward],
    client: {
      send: async (_method: string, _path: string, { body }: { body: { ports: ForwardPort[] } }) => {
        forward.ports = body.ports;
      },
    },
  } as unknown as IncusApi;
  const instance = {
    name: 'berth-a',
    location: 'none',
    config: {},
    state: {
      network: { eth0: { addresses: [{ family: 'inet', address: '10.0.0.5', scope: 'global' }] } },
    },
  } as unknown as Instance;
  const settings = { ports: [22_000, 22_009] as [number, number], addresses: { none: '192.0.2.1' } };
  await new Forwards(api, settings).ensure(instance, 'incusbr0', incusOfferSchema.parse({}));
  expect(forward.ports).toContainEqual(other);
  expect(forward.ports).not.toContainEqual(stale);
  expect(forward.ports).toContainEqual(
    expect.objectContaining({ description: forwardMark('berth-a'), target_address: '10.0.0.5' }),
  );
});
