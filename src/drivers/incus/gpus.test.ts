import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import { IncusApi, type Instance } from './api.ts';
import type { IncusClient } from './client.ts';
import { driverOver } from './driver.fixture.ts';
import { IncusRefusal } from './errors.ts';
import { type Fleet, FleetReader } from './fleet.ts';
import { InstanceReader } from './instances.ts';
import { incusConfigSchema, incusOfferSchema } from './options.ts';
import { freeGpus, roomOn } from './placement.ts';
import { mark } from './translate.ts';

type Body = Record<string, unknown> & { config?: Record<string, string>; devices?: Instance['devices'] };

const [FIRST, SECOND] = ['0000:1b:00.0', '0000:43:00.0'];
const cards = (count: number) =>
  [FIRST, SECOND].slice(0, count).map((pci) => ({ pci_address: pci, vendor_id: '10de', product_id: '2330' }));

/** A daemon with GPUs and several Berths. Each waits at `meet` before it writes its choice. */
function aDaemon(count: number, meet: () => Promise<void> = async () => undefined) {
  const instances = new Map<string, Instance>();
  const put = (name: string, { config = {}, devices = {} }: Body): void => {
    const before = instances.get(name);
    const shown = { config, devices, expanded_config: config, expanded_devices: devices };
    instances.set(name, { ...fresh(name), ...before, ...shown });
  };
  const send = async (method: string, path: string, { body = {} }: { body?: Body } = {}) => {
    const [, , , name = String(body['name']), part] = path.split('/');
    const known = instances.get(name);
    if (part === 'state') instances.set(name, { ...(known as Instance), status_code: 103 });
    else if (method === 'DELETE') instances.delete(name);
    else if (method === 'PATCH') put(name, { ...known, config: { ...known?.config, ...body.config } });
    else {
      await meet();
      if (method === 'POST' && known !== undefined) throw new IncusRefusal(409, 'already exists', method);
      put(name, body);
    }
    return { metadata: null, etag: undefined, operation: '00000000-0000-0000-0000-000000000000' };
  };
  const api = {
    instance: async (name: string) => instances.get(name),
    instanceToReplace: async (name: string) => ({ value: { ...instances.get(name) }, etag: undefined }),
    operation: async () => ({ status_code: 200 }),
    operations: async () => [],
    instanceNames: async () => [],
    image: async () => ({}),
    client: { project: 'default', send },
  } as unknown as IncusApi;
  const host = {
    name: 'none',
    groups: [],
    isOnline: true,
    isVoter: true,
    resources: { cpu: { total: 64 }, memory: { total: 2 ** 40 }, gpu: cards(count) },
    pools: new Map([['default', { driver: 'btrfs', status: 'Created', config: {}, bytes: 2 ** 40 }]]),
  };
  const read = async (): Promise<Fleet> => ({
    hosts: [host],
    instances: [...instances.values()],
    names: [...instances.keys()],
    released: new Set(),
    volumes: [],
  });
  const offers = new Map([['gpu', { id: 'gpu', gpuCount: 1, onStop: 'release' }]]);
  const reader = { read: async () => ({ ...(await read()), silent: new Set() }) };
  const berth = () => driverOver(api, { offers, fleet: { read }, instances: reader });
  return { host, instances, put, send, berth };
}

function fresh(name: string): Instance {
  return {
    name,
    type: 'container',
    status_code: 102,
    created_at: '2026-11-23T01:00:00Z',
    location: 'none',
    config: {},
    devices: {},
    expanded_config: {},
    expanded_devices: {},
    state: {
      status_code: 102,
      network: { eth0: { addresses: [{ family: 'inet', address: '10.0.0.5', scope: 'global' }] } },
    },
  };
}

const ours = (name: string) => ({
  [mark.createdBy]: 'berth',
  [mark.ref]: name,
  [mark.offer]: 'gpu',
  [mark.phase]: 'created',
});

const spec = (ref: string) =>
  ({
    ref,
    offerId: 'gpu',
    datacenter: 'fra',
    hostname: ref,
    image: 'debian',
    vcpus: 1,
    memoryGb: 1,
    rootDiskGb: 1,
    gpuCount: 1,
    sshKeys: [],
    note: '',
  }) as unknown as MachineSpec;

/** Repeats a step as the core does, until it is done or failed. */
async function finish<T extends { outcome: string }>(
  step: (cookie: string | null) => Promise<T>,
): Promise<T> {
  let cookie: string | null = null;
  for (let calls = 0; ; calls++) {
    const answer = await step(cookie);
    if (answer.outcome !== 'pending' || calls === 30) return answer;
    cookie = (answer as unknown as { cookie: string }).cookie;
    await Promise.resolve();
  }
}

const gpusOf = (instances: ReadonlyMap<string, Instance>) =>
  [...instances.values()].flatMap(({ devices }) =>
    Object.values(devices).flatMap(({ type, pci }) => (type === 'gpu' ? [pci] : [])),
  );

/** Callers wait here until `of` of them have arrived. */
function meeting(of: number): () => Promise<void> {
  let here = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  return async () => {
    if (++here === of) resolve();
    if (here <= of) await promise;
  };
}

it.each([
  ['one Berth', 'one'],
  ['two Berths', 'two'],
])('two machines started at once by %s get one GPU each [incus-gpus-start]', async (_what, berths) => {
  const { instances, put, berth } = aDaemon(2, berths === 'two' ? meeting(2) : undefined);
  for (const name of ['berth-a', 'berth-b']) put(name, { config: ours(name) });
  const first = berth();
  const second = berths === 'two' ? berth() : first;
  const steps = await Promise.all([
    finish((cookie) => first.start('berth-a', cookie)),
    finish((cookie) => second.start('berth-b', cookie)),
  ]);
  expect(steps).toMatchObject([{ outcome: 'done' }, { outcome: 'done' }]);
  expect(gpusOf(instances).sort()).toEqual([FIRST, SECOND]);
});

it('two Berths that make a machine at once do not assign the same GPU twice: one create is repeated, and finds no capacity [incus-gpus-create]', async () => {
  const { instances, berth } = aDaemon(1, meeting(2));
  const steps = await Promise.all(
    ['berth-a', 'berth-b'].map((ref) => {
      const machines = berth();
      return finish((cookie) => machines.create(spec(ref), cookie));
    }),
  );
  expect(steps.map(({ outcome }) => outcome).sort()).toEqual(['done', 'failed']);
  const failed = { outcome: 'failed', code: 'unfinished', sideEffect: 'certain' };
  expect(steps.find(({ outcome }) => outcome === 'failed')).toMatchObject(failed);
  // The core makes the next attempt.
  expect(await berth().create(spec('berth-b-g1'), null)).toMatchObject({ code: 'capacity' });
  const loser = [...instances.values()].find(({ status_code: code }) => code === 102)?.name ?? '';
  const remover = berth();
  expect(await finish((cookie) => remover.destroy(loser, cookie, anOrder))).toMatchObject({
    outcome: 'done',
  });
  expect(gpusOf(instances)).toEqual([FIRST]);
});

it('a machine that lost its GPUs before its first run never starts without them', async () => {
  const { instances, put, berth } = aDaemon(1);
  put('berth-a', { config: { ...ours('berth-a'), [mark.phase]: 'built', [mark.gpus]: 'open' } });
  expect(await berth().create(spec('berth-a'), null)).toMatchObject({
    outcome: 'failed',
    code: 'unfinished',
  });
  expect(instances.get('berth-a')).toMatchObject({ status_code: 102 });
});

it('a machine keeps its GPU when another one claims it later', async () => {
  const { instances, put, berth } = aDaemon(1);
  const gpu = { gpu0: { type: 'gpu', gputype: 'physical', pci: FIRST } };
  put('berth-b', { config: ours('berth-b'), devices: gpu });
  put('berth-a', { config: { ...ours('berth-a'), [mark.gpus]: 'open' }, devices: gpu });
  const step = await finish((cookie) => berth().start('berth-a', cookie));
  expect(step).toMatchObject({ outcome: 'failed', code: 'capacity' });
  expect(instances.get('berth-a')).toMatchObject({ status_code: 102, devices: {} });
  expect(instances.get('berth-b')).toMatchObject({ devices: gpu });
});

it('a start waits for a member that does not report its resources, and does not fail with capacity', async () => {
  const { host, put, berth } = aDaemon(1);
  put('berth-a', { config: ours('berth-a') });
  host.isOnline = false;
  expect(await berth().start('berth-a', null)).toMatchObject({ outcome: 'failed', code: 'transient' });
  host.isOnline = true;
  expect(await finish((cookie) => berth().start('berth-a', cookie))).toMatchObject({ outcome: 'done' });
});

/** Reads the fleet of member n1, where another project has these instances. */
async function readFleet(foreign: readonly object[]): Promise<Fleet> {
  const own = { ...fresh('berth-b'), project: 'default', location: 'n1' };
  const answers: Record<string, unknown> = {
    '/1.0': {
      api_extensions: [],
      auth: 'trusted',
      environment: { server_clustered: true, server_name: 'n1', server_version: '6.0' },
    },
    '/1.0/cluster/members': [{ server_name: 'n1', status: 'Online', message: '', roles: ['database'] }],
    '/1.0/resources': { cpu: { total: 64 }, memory: { total: 2 ** 40 }, gpu: { cards: cards(2) } },
    '/1.0/storage-pools/default': { driver: 'lvm', status: 'Created' },
    '/1.0/storage-pools/default/resources': { space: { total: 2 ** 40 } },
    '/1.0/storage-pools/default/volumes/custom': [],
  };
  const client = {
    project: 'default',
    get: async (path: string, query: Record<string, string> = {}) => {
      if (path !== '/1.0/instances') return { metadata: answers[path] };
      if (query['all-projects'] === undefined) return { metadata: [own] };
      const paths = ['/1.0/instances/berth-b', '/1.0/instances/berth-a?project=lab'];
      return { metadata: query['recursion'] === undefined ? paths : [own, ...foreign] };
    },
  } as unknown as IncusClient;
  const api = new IncusApi(client);
  const catalog = { offers: new Map(), regions: new Map() } as unknown as Catalog;
  return new FleetReader({ api, instances: new InstanceReader(api) }, options, catalog, () => 0).read();
}

const options = incusConfigSchema.parse({ driver: 'incus' });
const foreign = { ...fresh('berth-a'), project: 'lab', location: 'n1' };

it('a GPU of an instance in another project is not free, nor are the other resources of that instance', async () => {
  const config = { 'limits.cpu': '60' };
  const gpu = { type: 'gpu', pci: FIRST };
  const fleet = await readFleet([{ ...foreign, expanded_config: config, expanded_devices: { gpu } }]);
  const [host] = fleet.hosts;
  if (host === undefined) throw new Error('it shows no host');
  const any = incusOfferSchema.parse({});
  expect(freeGpus(host, fleet, any)).toEqual([SECOND]);
  expect(roomOn(host, fleet, { vcpus: 1, memoryGb: 0, rootDiskGb: 0, gpuCount: 0 }, any, options)).toBe(4);
  expect(fleet.names).toEqual(['berth-b']);
});

it('a member is silent if Incus lists an instance of another project on it without its resources', async () => {
  const unread = {
    status_code: 112,
    config: null,
    devices: null,
    expanded_config: null,
    expanded_devices: null,
  };
  expect((await readFleet([{ ...foreign, ...unread }])).hosts).toMatchObject([
    { name: 'n1', isOnline: false },
  ]);
  const root = { root: { type: 'disk', path: '/', pool: 'default' } };
  const known = { ...foreign, status_code: 112, expanded_devices: root };
  expect((await readFleet([known])).hosts).toMatchObject([{ name: 'n1', isOnline: true }]);
});
