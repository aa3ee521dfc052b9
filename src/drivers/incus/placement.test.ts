import { describe, expect, it } from 'vitest';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Instance, Resources } from './api.ts';
import { anIncus } from './fake-incus.fixture.ts';
import { type Fleet, type Host, isJudgeable, type Pool } from './fleet.ts';
import { incusConfigSchema, incusOfferSchema } from './options.ts';
import { countFree, freeGpus, placesFor, roomOn, toHosts } from './placement.ts';
import { toPlatform } from './translate.ts';

const GIB = 2 ** 30;
const options = incusConfigSchema.parse({
  driver: 'incus',
  storage_pool: 'local',
  datacenters: { fra: 'frankfurt' },
});
const offer = incusOfferSchema.parse({ gpus: { vendor_id: '10de', product_id: '2330' } });
const any = incusOfferSchema.parse({});

/** The relevant part of `/1.0/resources` for a host with two H100 and the graphics card of its BMC. */
const resources: Resources = {
  cpu: { total: 64 },
  memory: { total: 512 * GIB },
  gpu: [
    {
      pci_address: '0000:03:00.0',
      vendor_id: '102b',
      product_id: '0536',
      product: 'Integrated Matrox G200eW3',
    },
    { pci_address: '0000:1b:00.0', vendor_id: '10de', product_id: '2330', product: 'GH100 [H100 SXM5 80GB]' },
    { pci_address: '0000:43:00.0', vendor_id: '10de', product_id: '2330', product: 'GH100 [H100 SXM5 80GB]' },
  ],
};

const aPool = (bytes: number, more: Partial<Pool> = {}): Pool => ({
  ...{ driver: 'btrfs', status: 'Created', config: {}, bytes },
  ...more,
});

function host(name: string, changes: Partial<Host> = {}): Host {
  return {
    name,
    groups: ['default', 'frankfurt'],
    isOnline: true,
    isVoter: false,
    resources,
    pools: new Map([['local', aPool(2000 * GIB)]]),
    ...changes,
  };
}

function instance(location: string, config: Instance['config'], devices: Instance['devices'] = {}): Instance {
  return {
    name: 'x',
    type: 'container',
    status_code: 102,
    created_at: '2026-11-23T01:00:00Z',
    location,
    config,
    devices,
    expanded_config: config,
    expanded_devices: devices,
  };
}

const fleet = (hosts: Host[], instances: Instance[] = []): Fleet => ({
  hosts,
  instances,
  names: [],
  released: new Set(),
  volumes: [],
});
const placeFor = (...args: Parameters<typeof placesFor>) => placesFor(...args)[0];
const wanted = { vcpus: 8, memoryGb: 64, rootDiskGb: 100, gpuCount: 0 };

describe('the room on a member', () => {
  it('is limited by the scarcest of CPUs, memory, disk and GPUs', () => {
    const h = host('a');
    expect(roomOn(h, fleet([h]), wanted, any, options)).toBe(8);
    expect(roomOn(h, fleet([h]), { ...wanted, memoryGb: 200 }, any, options)).toBe(2);
    expect(roomOn(h, fleet([h]), { ...wanted, rootDiskGb: 1500 }, any, options)).toBe(1);
    expect(roomOn(h, fleet([h]), { ...wanted, gpuCount: 1 }, offer, options)).toBe(2);
    expect(roomOn(h, fleet([h]), { ...wanted, gpuCount: 3 }, offer, options)).toBe(0);
  });

  it('subtracts every instance, even a stopped or a foreign one, and the volumes of the pool', () => {
    const h = host('a');
    const root = { root: { type: 'disk', path: '/', pool: 'local', size: '1700GiB' } };
    const busy = instance('a', { 'limits.cpu': '0-31,40', 'limits.memory': '64GiB' });
    expect(roomOn(h, fleet([h], [busy]), wanted, any, options)).toBe(3);
    expect(roomOn(h, fleet([h], [instance('b', { 'limits.cpu': '64' })]), wanted, any, options)).toBe(8);
    expect(roomOn(h, fleet([h], [instance('a', {}, root)]), wanted, any, options)).toBe(3);
    const volume = {
      name: 'v',
      type: 'custom',
      created_at: '',
      location: 'a',
      config: { size: '1950GiB' },
      pool: 'local',
    };
    expect(roomOn(h, { ...fleet([h]), volumes: [volume] }, wanted, any, options)).toBe(0);
  });
});

describe('GPUs', () => {
  it('are those of the offer that no instance has, with either spelling of the address', () => {
    const h = host('a');
    expect(freeGpus(h, fleet([h]), offer)).toEqual(['0000:1b:00.0', '0000:43:00.0']);
    expect(freeGpus(h, fleet([h]), incusOfferSchema.parse({ gpus: { pci: ['0000:43:00.0'] } }))).toEqual([
      '0000:43:00.0',
    ]);
    const taken = instance('a', {}, { g: { type: 'gpu', gputype: 'physical', pci: '1B:00.0' } });
    expect(freeGpus(h, fleet([h], [taken]), offer)).toEqual(['0000:43:00.0']);
  });

  it('are none if an instance has all of them', () => {
    const h = host('a');
    expect(freeGpus(h, fleet([h], [instance('a', {}, { g: { type: 'gpu' } })]), offer)).toEqual([]);
  });

  it('are given to the machine by their address', () => {
    const machine = { ...spec, gpuCount: 2 };
    const gpus = freeGpus(host('a'), fleet([host('a')]), offer);
    expect(toPlatform(machine, offer, options, gpus)).toMatchObject({
      devices: {
        gpu0: { type: 'gpu', gputype: 'physical', pci: '0000:1b:00.0' },
        gpu1: { type: 'gpu', gputype: 'physical', pci: '0000:43:00.0' },
      },
    });
  });
});

const spec = {
  ...wanted,
  ref: 'berth-1',
  offerId: 'o',
  datacenter: 'fra',
  hostname: 'h',
  image: 'i',
  gpuType: undefined,
  sshKeys: [],
  cloudInit: undefined,
  note: '',
};

const catalog = {
  regions: new Map(),
  offers: new Map([
    ['o', { ...wanted, id: 'o', machine: {}, storageGb: 10, placements: [{ region: 'fra', units: 9 }] }],
  ]),
} as unknown as Catalog;

describe('a machine goes', () => {
  it('to the online member of its group and datacenter with the most room', () => {
    const full = [instance('a', { 'limits.cpu': '60' })];
    const hosts = [host('a'), host('b'), host('c', { isOnline: false }), host('d', { groups: ['default'] })];
    expect(placeFor(spec, fleet(hosts, full), any, options)?.host.name).toBe('b');
    const grouped = incusOfferSchema.parse({ host_group: 'gpu' });
    expect(placeFor(spec, fleet(hosts, full), grouped, options)).toBeUndefined();
    const special = host('e', { groups: ['gpu', 'frankfurt'] });
    expect(placeFor(spec, fleet([...hosts, special], full), grouped, options)?.host.name).toBe('e');
  });

  it('nowhere while most voters read as offline, without an answer of no capacity: heartbeats may be late', () => {
    const voters = (...online: boolean[]): Host[] =>
      online.map((isOnline, index) => host(`v${index}`, { isOnline, isVoter: true }));
    expect(isJudgeable(fleet(voters(true)))).toBe(true);
    expect(isJudgeable(fleet(voters(true, true, false)))).toBe(true);
    expect(isJudgeable(fleet(voters(true, false, false)))).toBe(false);
    expect(isJudgeable(fleet(voters(false, false, false)))).toBe(false);
    // In a larger cluster, most members may be lost while the voters keep it running.
    const others = ['d', 'e', 'f', 'g'].map((name) => host(name, { isOnline: false }));
    expect(isJudgeable(fleet([...voters(true, true, true), ...others]))).toBe(true);
  });

  it('to no member that an operator has cordoned, and no units are counted there', () => {
    const hosts = [host('a'), host('b')];
    const full = fleet(hosts, [instance('b', { 'limits.cpu': '32' })]);
    expect(placeFor(spec, full, any, options)?.host.name).toBe('a');
    expect(placeFor({ ...spec, avoidHosts: ['a'] }, full, any, options)?.host.name).toBe('b');
    expect(placeFor({ ...spec, avoidHosts: ['a', 'b'] }, full, any, options)).toBeUndefined();
    const units = (avoid?: string[]) => countFree(catalog, fleet(hosts), options, avoid)[0]?.units;
    expect(units(['a', 'b'])).toBe(0);
    expect(units(['a'])).toBe((units() ?? 0) / 2);
  });

  it('nowhere while the pool cannot be written, without a verdict on the size of the offer [incus-pool-unwritable]', () => {
    const problem = { problem: 'read-only', bytes: 0 };
    const hosts = [host('a', { pools: new Map([['local', aPool(0, problem)]]) })];
    const [count] = countFree(catalog, fleet(hosts), options);
    expect(count).toMatchObject({
      units: 0,
      obstacles: [expect.stringContaining('local, which is read-only')],
    });
    expect(count?.misfits).toBeUndefined();
  });

  it('nowhere if no member has room', () => {
    expect(placeFor({ ...spec, vcpus: 65 }, fleet([host('a')]), any, options)).toBeUndefined();
  });
});

it('shows the operator each member: its usage, and who has its GPUs [incus-hosts]', () => {
  const catalog = {
    offers: new Map([['gpu', { gpuCount: 1, machine: { gpus: { vendor_id: '10de', product_id: '2330' } } }]]),
  } as unknown as Catalog;
  const busy = {
    ...instance('a', { 'limits.cpu': '8', 'limits.memory': '64GiB' }, { g: { type: 'gpu', pci: '1b:00.0' } }),
    name: 'berth-inst-1',
  };
  const hosts = [host('a'), host('b'), host('c', { isOnline: false })];
  const shown = toHosts(catalog, fleet(hosts, [busy]), options, ['b']);
  expect(shown).toMatchObject([
    {
      host: 'a',
      state: 'open',
      vcpus: { total: 64, taken: 8 },
      memoryGb: { total: 512, taken: 64 },
      diskGb: { total: 2000, taken: 0 },
    },
    { host: 'b', state: 'closed', detail: expect.stringContaining('operator') },
    { host: 'c', state: 'silent' },
  ]);
  expect(shown[0]?.devices?.map(({ id, state, ref }) => [id, state, ref])).toEqual([
    ['0000:1b:00.0', 'claimed', 'berth-inst-1'],
    ['0000:43:00.0', 'free', undefined],
  ]);
});

it('the limits of the project count, and are named [incus-project-limits]', async () => {
  const small = {
    id: 'small',
    vcpus: 2,
    memoryGb: 1,
    storageGb: 10,
    placements: [{ region: 'd' }],
    machine: {},
  };
  const { machines, limits } = anIncus({ offers: new Map([['small', small]]) });
  limits['containers'] = { Limit: -1, Usage: 3 };
  expect(await machines.inventory()).toMatchObject({ free: [{ units: 6 }] });
  limits['instances'] = { Limit: 5, Usage: 3 };
  expect(await machines.inventory()).toMatchObject({ free: [{ units: 2 }] });
  limits['cpu'] = { Limit: 8, Usage: 7 };
  expect(await machines.inventory()).toMatchObject({
    free: [{ units: 0 }],
    limitedBy: ['limits.instances of default leaves 2', 'limits.cpu of default leaves 1'],
  });
});
