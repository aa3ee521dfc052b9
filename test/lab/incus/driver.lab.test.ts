import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { incus } from '../../../src/drivers/incus/driver.ts';
import { type IncusConfig, incusConfigSchema } from '../../../src/drivers/incus/options.ts';
import { describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import type { DriverSetting } from '../../../src/drivers/kit/driver-definition.ts';
import { guestLogin } from '../../../src/drivers/kit/guest.fixture.ts';
import type { Offer } from '../../../src/orchestrator/catalog/catalog.ts';
import type { ObservedMachine, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import { systemClock } from '../../../src/runtime/system.ts';
import { collectLog } from '../../support/collect-log.ts';
import { type Cluster, image, makeCertificate, startCluster } from './cluster.ts';

let cluster: Cluster;
let cpus: number;

beforeAll(async () => {
  cluster = await startCluster();
  cpus = (await cluster.api.resources('n1')).cpu.total;
  const body = { name: 'pair', members: ['n1', 'n2'] };
  await cluster.api.client.send('POST', '/1.0/cluster/groups', { body });
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const optionsOf = (more: object): IncusConfig =>
  // A machine takes all that a member has, and two members are sold from.
  incusConfigSchema.parse(cluster.platform({ overcommit: {}, datacenters: { fra: 'pair' }, ...more }));

const setting = (): DriverSetting => ({
  catalog: { regions: new Map(), offers: new Map([['small', small as Offer]]) },
  databaseFile: undefined,
  env: {},
  clock: systemClock,
  log: collectLog().log,
  platform: 'default',
});

const open = (more: object = {}): Promise<PlatformDriver> => incus.open(optionsOf(more), setting());

/** What the driver reads of an offer. */
const small: Partial<Offer> = {
  id: 'small',
  machine: {},
  get vcpus() {
    return cpus;
  },
  memoryGb: 0.25,
  storageGb: 1,
  gpuCount: undefined,
  placements: [{ region: 'fra', units: 2 }],
  osOptions: [image.name],
  onStop: 'release',
};

const { sshKeys, guest } = guestLogin();
const run = (machine: ObservedMachine, line: string): Promise<string> =>
  guest.run?.(machine, line) ?? Promise.reject();

describeDriver('a cluster of Incus', {
  setup: async () => ({
    driver: await open(),
    machineSpec: (ref) => ({
      ref,
      offerId: 'small',
      datacenter: 'fra',
      hostname: ref,
      image: image.name,
      vcpus: cpus,
      memoryGb: 0.25,
      rootDiskGb: 1,
      gpuCount: 0,
      gpuType: undefined,
      sshKeys,
      cloudInit: undefined,
      note: 'a note',
    }),
    volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 0.125, type: undefined, note: 'a note' }),
    units: 2,
    wait: (ms) => sleep(ms),
    patienceMs: 120_000,
    guest: {
      ...guest,
      volume: {
        write: async (machine, volume, text) => {
          await run(machine, `echo '${text}' | sudo tee /mnt/${volume}/text`);
        },
        read: async (machine, volume) => (await run(machine, `sudo cat /mnt/${volume}/text`)).trim(),
      },
    },
    impossible: {
      image_missing: { image: 'no-such-image' },
      capacity: { datacenter: 'fra', vcpus: 10_000 },
    },
    reopen: () => open(),
    openUnreachable: () => open({ address: 'unix:/nowhere/unix.socket' }),
  }),
  teardown: async ({ driver }) => {
    let listing = await driver.list();
    while (listing.answer !== 'listed') listing = await driver.list();
    for (const { ref } of listing.items)
      while ((await driver.destroy(ref, null)).outcome !== 'done') await sleep(100);
    const volumes = await driver.volumes?.list();
    for (const { ref } of volumes?.answer === 'listed' ? volumes.items : [])
      while ((await driver.volumes?.destroy(ref, null))?.outcome !== 'done') await sleep(100);
    await driver.close();
    expect(await cluster.contents()).toEqual([]);
  },
  timeoutMs: 240_000,
});

describe('the diagnosis of a cluster', () => {
  const verdictsOf = async (more: object): Promise<Record<string, string>> => {
    const found: Record<string, string> = {};
    for await (const { subject, verdict, finding, remedy } of incus.diagnose?.(optionsOf(more), setting()) ??
      []) {
      expect(finding).toMatch(/\.$/);
      expect(remedy !== undefined).toBe(verdict !== 'ok');
      if (verdict !== 'ok') found[subject] = verdict;
    }
    return found;
  };

  it('finds nothing to mend on one that is as the how-to says', async () => {
    expect(await verdictsOf({})).toEqual({});
  });

  it('names each thing that is missing', async () => {
    const images = { [image.name]: { alias: 'no-image' } };
    const addresses = { n1: cluster.nodes[0].address };
    const wrong = { images, network: 'no-network', storage_pool: 'no-pool', profiles: ['no-profile'] };
    expect(await verdictsOf({ ...wrong, port_forwards: { ports: '1000-1001', addresses } })).toMatchObject({
      'network no-network': 'broken',
      'storage pool no-pool': 'broken',
      'profile no-profile': 'broken',
      'image no-image': 'broken',
      'port forwards on n2': 'broken',
      'port forwards on n3': 'broken',
    });
  });

  it('names a project that does not exist, and nothing in it is believed [incus-no-such-project-lab]', async () => {
    expect(await verdictsOf({ project: 'defualt' })).toMatchObject({ 'project defualt': 'broken' });
    const driver = await open({ project: 'defualt' });
    const answers = [await driver.list(), await driver.get('berth-a'), await driver.volumes?.list()];
    await driver.close();
    expect(answers.map((one) => one?.answer)).toEqual(['unknown', 'unknown', 'unknown']);
  });

  it('says that its members run no virtual machines', async () => {
    const before = small.machine;
    small.machine = { kind: 'virtual-machine' };
    const canRun = (await cluster.api.server()).environment.driver?.includes('qemu');
    try {
      expect(await verdictsOf({})).toEqual(
        canRun === true
          ? {}
          : Object.fromEntries(['n1', 'n2', 'n3'].map((name) => [`virtual machines on ${name}`, 'broken'])),
      );
    } finally {
      small.machine = before ?? {};
    }
  });

  it('says that nobody answers, and that a certificate is not trusted', async () => {
    expect(Object.values(await verdictsOf({ address: 'unix:/nowhere/unix.socket' }))).toEqual(['broken']);
    const { certificate, key } = makeCertificate(cluster.folder, 'stranger');
    const stranger = { client_certificate: certificate, client_key: key };
    expect(Object.values(await verdictsOf(stranger))).toEqual(['broken']);
  });
});
