import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { incus } from '../../../src/drivers/incus/driver.ts';
import { type IncusConfig, incusConfigSchema } from '../../../src/drivers/incus/options.ts';
import { describeDriver } from '../../../src/drivers/kit/driver.suite.ts';
import type { ObservedMachine, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import { anOrder } from '../../support/rows/orchestrator-rows.ts';
import { contextOf, type LabMachine, run, settingOf } from '../driver-context.ts';
import { type Cluster, image, makeCertificate, startCluster } from './cluster.ts';

let cluster: Cluster;
/** It takes all that a member has, and two members are sold from. */
const machine: LabMachine = { datacenter: 'fra', image: image.name, vcpus: 0, memoryGb: 0.25 };

beforeAll(async () => {
  cluster = await startCluster();
  machine.vcpus = (await cluster.api.resources('n1')).cpu.total;
  const body = { name: 'pair', members: ['n1', 'n2'] };
  await cluster.api.client.send('POST', '/1.0/cluster/groups', { body });
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const optionsOf = (more: object): IncusConfig =>
  incusConfigSchema.parse(cluster.platform({ overcommit: {}, datacenters: { fra: 'pair' }, ...more }));

const open = (more: object = {}): Promise<PlatformDriver> => incus.open(optionsOf(more), settingOf(machine));

const volume = {
  write: async (at: ObservedMachine, name: string, text: string) => {
    await run(at, `echo '${text}' | sudo tee /mnt/${name}/text`);
  },
  read: async (at: ObservedMachine, name: string) => (await run(at, `sudo cat /mnt/${name}/text`)).trim(),
};

/** As the operator does who has it now. */
async function removeReleased(ref: string): Promise<string[]> {
  const { api } = cluster;
  const instance = await api.instance(ref);
  expect(Object.keys(instance?.config ?? {}).filter((key) => key.startsWith('user.berth.'))).toEqual([]);
  expect(Object.keys(instance?.devices ?? {}).sort()).toEqual(['eth0', 'root']);
  if (instance === undefined) return [];
  await api.client.send('DELETE', `/1.0/instances/${ref}`, { order: anOrder });
  while ((await api.instanceNames()).includes(ref)) await sleep(100);
  return [`the disk of ${instance.name}`];
}

it('runs on the version that docs/drivers.md names', async () => {
  const { server_version: version } = (await cluster.api.server()).environment;
  expect(incus.about.provedOn).toContain(`Incus ${version}, `);
});

describeDriver('a cluster of Incus', {
  setup: async () =>
    contextOf(machine, volume, {
      driver: await open(),
      reopen: () => open(),
      removeReleased,
      openUnreachable: () => open({ address: 'unix:/nowhere/unix.socket' }),
    }),
  teardown: async ({ driver }) => {
    let listing = await driver.list();
    while (listing.answer !== 'listed') listing = await driver.list();
    for (const { ref } of listing.items)
      while ((await driver.destroy(ref, null, anOrder)).outcome !== 'done') await sleep(100);
    const volumes = await driver.volumes?.list();
    for (const { ref } of volumes?.answer === 'listed' ? volumes.items : [])
      while ((await driver.volumes?.destroy(ref, null, anOrder))?.outcome !== 'done') await sleep(100);
    await driver.close();
    expect(await cluster.contents()).toEqual([]);
  },
  timeoutMs: 900_000,
});

describe('the diagnosis of a cluster', () => {
  const verdictsOf = async (more: object, kind = 'container'): Promise<Record<string, string>> => {
    const found: Record<string, string> = {};
    const setting = settingOf(machine, { kind });
    for await (const { subject, verdict, finding, remedy } of incus.diagnose?.(optionsOf(more), setting) ??
      []) {
      expect(finding).toMatch(/\.$/);
      expect(remedy !== undefined).toBe(verdict !== 'ok');
      if (verdict !== 'ok') found[subject] = verdict;
    }
    return found;
  };

  it('finds nothing to mend on one that is as the how-to says, once what Incus warns of is acknowledged', async () => {
    const { client } = cluster.api;
    const all = { 'all-projects': 'true' };
    const { metadata } = await client.get('/1.0/warnings', { recursion: '1', ...all });
    for (const { uuid } of metadata as { uuid: string }[])
      await client.send('PUT', `/1.0/warnings/${uuid}`, { query: all, body: { status: 'acknowledged' } });
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

  it('says that its members run no virtual machines, and that the image is not of one', async () => {
    const canRun = (await cluster.api.server()).environment.driver?.includes('qemu');
    const members = canRun === true ? [] : ['n1', 'n2', 'n3'];
    expect(await verdictsOf({}, 'virtual-machine')).toEqual({
      [`image ${image.alias}`]: 'broken',
      ...Object.fromEntries(members.map((name) => [`virtual machines on ${name}`, 'broken'])),
    });
  });

  it('reports an address that does not answer, and a certificate that is not trusted', async () => {
    expect(Object.values(await verdictsOf({ address: 'unix:/nowhere/unix.socket' }))).toEqual(['broken']);
    const { certificate, key } = makeCertificate(cluster.folder, 'stranger');
    const stranger = { client_certificate: certificate, client_key: key };
    expect(Object.values(await verdictsOf(stranger))).toEqual(['broken']);
  });
});
