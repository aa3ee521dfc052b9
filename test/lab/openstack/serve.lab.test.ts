import { afterAll, beforeAll, expect, it } from 'vitest';
import { liveThroughKills } from '../../lifecycle/over-any-driver.suite.ts';
import { runBerth } from '../../support/processes/process.ts';
import { LabServer } from '../lab-server.ts';
import type { Answer } from './api.ts';
import { networks } from './catalog.ts';
import { Cloud } from './cloud.ts';
import { type LibvirtCompute, startLibvirtCompute } from './libvirt-compute.ts';

const region = 'eu-lab';
/** The host has two CPUs to sell. */
const UNITS = 2;
const offer = {
  id: 'tiny',
  name: 'tiny',
  instance_type: 'DEDICATED',
  vcpus: 1,
  memory_gb: 0.25,
  storage_gb: 1,
  price_per_hour: 0.01,
  os_options: ['tiny'],
  supports_cloud_init: true,
  online_within_s: 900,
  capacity: { [region]: UNITS },
  machine: { flavor: 'small' },
};
const catalog = {
  regions: { [region]: { name: 'Lab', country_code: 'DE', datacenter: 'lab1' } },
  offers: [offer],
};

let cloud: Cloud;
let compute: LibvirtCompute;
let server: LabServer;
beforeAll(async () => {
  cloud = await Cloud.start();
  compute = await startLibvirtCompute(cloud);
  const platform = {
    ...{
      driver: 'openstack',
      cloud: 'lab',
      clouds_file: cloud.writeCloudsFile(),
      network: networks.tenants.name,
    },
    datacenters: { lab1: { zones: [compute.zone] } },
    images: { tiny: { login_user: 'debian' } },
  };
  server = new LabServer(catalog, platform, { configuration_id: offer.id, region });
  await server.start();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await compute?.[Symbol.asyncDispose]();
  await cloud?.[Symbol.asyncDispose]();
});

const nothingIsLeft = (): Promise<void> => expect.poll(() => cloud.contents()).toEqual([]);

it('has nothing that berth doctor calls broken [openstack-doctor]', async () => {
  const { code, stdout } = await runBerth(['doctor', '--config', server.config]);
  expect(stdout).not.toContain('BROKEN');
  expect([code, stdout]).toEqual([0, expect.stringContaining('flavor small')]);
});

it('boots a machine that its owner logs into; it keeps its disk and address over a stop that shelves it [openstack-life]', async () => {
  const path = await server.create();
  const machine = await server.online(path).catch((error: Error) => {
    throw new Error(`${error.message}\n${compute.log()}`);
  });
  for (const key of server.keys)
    expect(await server.login(machine, 'id -un', key)).toMatchObject({ stdout: 'debian\n' });
  await server.login(machine, 'echo on the disk >text; sync');
  await server.client.request('POST', `${path}/stop`);
  await server.client.waitFor(path, 'STOPPED');
  expect(await cloud.contents()).toContainEqual(expect.stringMatching(/^server .* SHELVED_OFFLOADED$/));
  await server.client.request('POST', `${path}/start`);
  const again = await server.online(path);
  expect(again['public_ip']).toBe(machine['public_ip']);
  expect(await server.login(again, 'cat text')).toMatchObject({ stdout: 'on the disk\n' });
  await server.destroy(path);
  await nothingIsLeft();
});

it('a machine lives through kill -9 of Berth at each moment [openstack-lifecycle]', async () => {
  await liveThroughKills({
    server,
    request: server.request(),
    async machines() {
      const { servers } = await cloud.admin.send('nova-api', 'GET', '/servers/detail');
      return servers.map(({ name }: Answer) => name);
    },
    letsIn: async (machine) => (await server.login(machine, 'echo in')).stdout === 'in\n',
    calls: { create: 2, restart: 2 },
  });
  await nothingIsLeft();
});

it('is CONFORMANT at level full [openstack-conformance]', async () => {
  const race = `${offer.id}=${UNITS}`;
  await server.expectConformant('--poll-interval-ms', '1000', '--offer', offer.id, '--race', race);
  await nothingIsLeft();
});
