import { expect, it, vi } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Forward, ForwardPort, IncusApi, Instance } from './api.ts';
import { driverOver } from './driver.fixture.ts';
import { Forwards } from './forwards.ts';
import { incusOfferSchema } from './options.ts';
import { forwardMark, mark, phases, UUID } from './translate.ts';

const port = (ref: string, listen: number, address: string, project = 'default'): ForwardPort => ({
  description: forwardMark(ref, project),
  protocol: 'tcp',
  listen_port: String(listen),
  target_port: '22',
  target_address: address,
});

it('keeps ports of another Berth on the network, and removes an older one that led to the same address', async () => {
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
      project: 'default',
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
    expect.objectContaining({ description: forwardMark('berth-a', 'default'), target_address: '10.0.0.5' }),
  );
});

/** Two machines, and several Berths that change the forwards of one address. */
function forwardsOfTwo() {
  const listen = '192.0.2.1';
  const stored: Forward = {
    listen_address: listen,
    description: 'x',
    config: {},
    location: 'none',
    ports: [],
  };
  const instances = ['berth-a', 'berth-b'].map(
    (name, index) =>
      ({
        name,
        location: 'none',
        status_code: 103,
        created_at: '2026-11-23T01:00:00Z',
        config: { [mark.createdBy]: 'berth', [mark.ref]: name, [mark.phase]: phases.created },
        expanded_devices: {},
        state: {
          network: { eth0: { addresses: [{ family: 'inet', address: `10.0.0.${index}`, scope: 'global' }] } },
        },
      }) as unknown as Instance,
  );
  /** One Berth. Incus replaces the whole object; each read waits for `mayRead`. */
  const berth = (mayRead: () => Promise<void> = async () => undefined) => {
    const api = {
      instance: async (name: string) => instances.find((one) => one.name === name),
      operations: async () => [],
      instanceNames: async () => [],
      hosts: async () => ({ answered: [], silent: [] }),
      forwards: async () => {
        const read = structuredClone(stored);
        await mayRead();
        return [read];
      },
      client: {
        project: 'default',
        send: async (_method: string, _path: string, { body }: { body: { ports: ForwardPort[] } }) => {
          stored.ports = body.ports;
        },
      },
    };
    const port_forwards = { ports: '22000-22009', addresses: { none: listen } };
    const reader = {
      read: async () => ({ instances, names: instances.map(({ name }) => name), silent: new Set() }),
    };
    return driverOver(api, { options: { port_forwards }, instances: reader });
  };
  return { listen, stored, instances, berth };
}

it('a read restores the ports of a machine that another Berth removed at the same moment [incus-forwards-undone]', async () => {
  const { listen, stored, berth } = forwardsOfTwo();
  const { promise: isLate, resolve: goOn } = Promise.withResolvers<void>();
  const late = berth(() => isLate).get('berth-b');
  expect(await berth().get('berth-a')).toMatchObject({ value: { power: 'running' } });
  goOn();
  await late;
  expect(stored.ports.map(({ description }) => description)).toEqual([forwardMark('berth-b', 'default')]);
  const again = await berth().get('berth-a');
  expect(again).toMatchObject({ value: { power: 'running', endpoint: { publicIp: listen } } });
  expect(stored.ports.map(({ description }) => description).sort()).toEqual([
    forwardMark('berth-a', 'default'),
    forwardMark('berth-b', 'default'),
  ]);
});

it('a listing also restores the ports of a running machine that has none, such as a moved one, and shows it running [incus-forwards-moved]', async () => {
  const { listen, berth } = forwardsOfTwo();
  const machines = berth();
  const list = () => machines.list();
  expect(await list()).toMatchObject({ items: [{ power: 'starting' }, { power: 'starting' }] });
  const endpoint = { publicIp: listen };
  await vi.waitFor(async () =>
    expect(await list()).toMatchObject({
      items: [
        { power: 'running', endpoint },
        { power: 'running', endpoint },
      ],
    }),
  );
});

it('a destroy checks again when another Berth restores the ports of the machine meanwhile [incus-forwards-late]', async () => {
  const { stored, instances, berth } = forwardsOfTwo();
  await berth().get('berth-a');
  const { promise: isLate, resolve: goOn } = Promise.withResolvers<void>();
  const late = berth(() => isLate).get('berth-b');
  instances.shift();
  const remover = berth();
  expect(await remover.destroy('berth-a', null, anOrder)).toMatchObject({ outcome: 'pending' });
  expect(stored.ports).toEqual([]);
  goOn();
  await late;
  expect(stored.ports.map(({ description }) => description)).toContain(forwardMark('berth-a', 'default'));
  expect(await remover.destroy('berth-a', 'destroy', anOrder)).toMatchObject({ outcome: 'pending' });
  expect(await remover.destroy('berth-a', 'destroy', anOrder)).toMatchObject({ outcome: 'done' });
  expect(stored.ports.map(({ description }) => description)).toEqual([forwardMark('berth-b', 'default')]);
});

it('ports that a late call forwarded to a removed machine are removed, and those of other projects stay [incus-forwards-swept]', async () => {
  const { stored, instances, berth } = forwardsOfTwo();
  await berth().get('berth-a');
  await berth().get('berth-b');
  const elsewhere = port('berth-c', 22_007, '10.0.0.7', 'more');
  stored.ports = [...stored.ports, elsewhere];
  instances.shift();
  const lister = berth();
  const shown = () => stored.ports.map(({ description }) => description);
  const all = shown();
  expect(all).toContain(forwardMark('berth-a', 'default'));
  await lister.list();
  expect(shown()).toEqual(all);
  await lister.list();
  await expect.poll(shown).toEqual(all.filter((one) => one !== forwardMark('berth-a', 'default')));
  await lister.list();
  expect(shown()).toHaveLength(2);
});

it('ports of a removed machine are also removed if a copy of it exists [incus-forwards-copied]', async () => {
  const { stored, instances, berth } = forwardsOfTwo();
  await berth().get('berth-a');
  await berth().get('berth-b');
  const [gone, { config }] = instances as [Instance, Instance];
  const ofCopy = { [mark.ref]: gone.name, [mark.uuid]: 'u1', [UUID]: 'u2' };
  instances[0] = { ...gone, name: 'copy', config: { ...config, ...ofCopy } };
  const lister = berth();
  await lister.list();
  await lister.list();
  const shown = () => stored.ports.map(({ description }) => description);
  await expect.poll(shown).toEqual([forwardMark('berth-b', 'default')]);
});

it('the ports of a machine with the same name in another project stay when the machine is destroyed [incus-forwards-project]', async () => {
  const { stored, instances, berth } = forwardsOfTwo();
  const elsewhere = port('berth-a', 22_007, '10.0.0.7', 'restored');
  stored.ports = [elsewhere];
  const get = () => berth().get('berth-a');
  await get();
  expect(stored.ports).toEqual([
    elsewhere,
    expect.objectContaining({ description: forwardMark('berth-a', 'default'), target_address: '10.0.0.0' }),
  ]);
  const own = Number(stored.ports[1]?.listen_port);
  expect(await get()).toMatchObject({ value: { endpoint: { privateIp: '10.0.0.0', sshPort: own } } });
  instances.shift();
  await berth().destroy('berth-a', null, anOrder);
  expect(await berth().destroy('berth-a', null, anOrder)).toMatchObject({ outcome: 'done' });
  expect(stored.ports).toEqual([elsewhere]);
});

it('only an order deletes the network forward with its last port: a sweep leaves it empty', async () => {
  const stored: Forward[] = [
    {
      listen_address: '192.0.2.1',
      description: 'ports of machines of Berth',
      config: {},
      location: 'none',
      ports: [port('berth-a', 22_001, '10.0.0.5')],
    },
  ];
  const send = async (method: string, _path: string, { body }: { body?: { ports: ForwardPort[] } }) => {
    if (method === 'DELETE') stored.pop();
    else if (stored[0] !== undefined) stored[0].ports = body?.ports ?? [];
  };
  const api = { forwards: async () => stored, client: { project: 'default', send } } as unknown as IncusApi;
  const forwards = new Forwards(api, { ports: [22_000, 22_009], addresses: { none: '192.0.2.1' } });
  await forwards.remove('berth-a', 'incusbr0', {});
  expect(stored).toMatchObject([{ ports: [] }]);
  await forwards.remove('berth-a', 'incusbr0', {});
  expect(stored).toHaveLength(1);
  await forwards.remove('berth-b', 'incusbr0', { order: anOrder });
  expect(stored).toEqual([]);
});
