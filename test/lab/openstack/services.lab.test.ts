import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guestLogin } from '../../../src/drivers/kit/guest.fixture.ts';
import type { Answer } from './api.ts';
import { computes, image } from './catalog.ts';
import { Cloud } from './cloud.ts';
import { startLibvirtCompute } from './libvirt-compute.ts';

let cloud: Cloud;
let tenants: string;
let imageRef: string;

beforeAll(async () => {
  cloud = await Cloud.start();
  tenants = await cloud.tenantsNetwork();
  imageRef = await cloud.idOf('images', image.name);
});
afterAll(() => cloud?.[Symbol.asyncDispose]());

async function addPort(name: string): Promise<Answer> {
  return (await cloud.own.send('neutron', 'POST', '/ports', { port: { name, network_id: tenants } })).port;
}

/** A server with a port of its own, ACTIVE. */
async function boot(name: string, more: object = {}): Promise<{ server: Answer; port: Answer }> {
  const port = await addPort(name);
  const { server } = await cloud.own.send('nova-api', 'POST', '/servers', {
    server: { name, flavorRef: 'small', imageRef, networks: [{ port: port.id }], ...more },
  });
  return { server: await cloud.operator.becomes(server.id, 'ACTIVE'), port };
}

const volumeOf = async (id: string): Promise<Answer> =>
  (await cloud.own.send('cinder-api', 'GET', `/volumes/${id}`)).volume;
const volumeBecomes = (id: string, status: string): Promise<void> =>
  expect.poll(async () => (await volumeOf(id)).status).toBe(status);

describe('the services', () => {
  it('run a server from its creation to its end, and nothing is left', async () => {
    const { operator, own } = cloud;
    const { server, port } = await boot('one', { availability_zone: 'az2' });
    expect(server['OS-EXT-SRV-ATTR:host']).toBe('cn2');
    const [{ ip_address: address }] = port.fixed_ips;
    expect(server.addresses.tenants).toMatchObject([{ addr: address, 'OS-EXT-IPS:type': 'fixed' }]);
    const bound = await cloud.admin.send('neutron', 'GET', `/ports/${port.id}`);
    expect(bound.port).toMatchObject({
      status: 'ACTIVE',
      'binding:vif_type': 'bridge',
      'binding:host_id': 'cn2',
    });
    await operator.stop(server.id);
    await operator.start(server.id);
    await operator.shelve(server.id);
    expect(await cloud.contents()).toEqual(['image one-shelved', 'port one', 'server one SHELVED_OFFLOADED']);
    await operator.unshelve(server.id);

    const made = await own.send('cinder-api', 'POST', '/volumes', { volume: { name: 'data', size: 1 } });
    await volumeBecomes(made.volume.id, 'available');
    const attachments = `/servers/${server.id}/os-volume_attachments`;
    await own.send('nova-api', 'POST', attachments, { volumeAttachment: { volumeId: made.volume.id } });
    await volumeBecomes(made.volume.id, 'in-use');
    await own.send('nova-api', 'DELETE', `${attachments}/${made.volume.id}`);
    await volumeBecomes(made.volume.id, 'available');
    await own.send('cinder-api', 'DELETE', `/volumes/${made.volume.id}`);

    await operator.remove(server.id);
    await own.send('neutron', 'DELETE', `/ports/${port.id}`);
    await expect.poll(() => cloud.contents()).toEqual([]);
  });

  it('boot a server from a volume with an image, and give it a floating IP', async () => {
    const { own, operator } = cloud;
    const source = { uuid: imageRef, source_type: 'image', destination_type: 'volume' };
    const disk = { ...source, volume_size: 1, boot_index: 0, delete_on_termination: true };
    const { server, port } = await boot('two', { imageRef: '', block_device_mapping_v2: [disk] });
    const outside = await cloud.idOf('networks', 'outside');
    const { floatingip } = await own.send('neutron', 'POST', '/floatingips', {
      floatingip: { floating_network_id: outside, port_id: port.id },
    });
    const addresses = async (): Promise<string[]> =>
      (await operator.server(server.id)).addresses.tenants.map(({ addr }: Answer) => addr);
    await expect.poll(addresses).toContain(floatingip.floating_ip_address);
    await operator.remove(server.id);
    await own.send('neutron', 'DELETE', `/floatingips/${floatingip.id}`);
    await own.send('neutron', 'DELETE', `/ports/${port.id}`);
    await expect.poll(() => cloud.contents()).toEqual([]);
  });

  it('do what an operator asks for behind the back of the owner', async () => {
    const { operator, own } = cloud;
    const { server, port } = await boot('three', { availability_zone: 'az1' });
    const { id } = server;
    await operator.rename(id, 'renamed');
    await operator.rebuild(id, imageRef);
    await operator.rescue(id);
    await operator.unrescue(id);
    expect((await operator.server(id)).name).toBe('renamed');
    await operator.remove(id);
    await own.send('neutron', 'DELETE', `/ports/${port.id}`);
    expect(await cloud.contents()).toEqual([]);
  });

  it('move a server that is bound to no zone, and its owner sees the host change', async () => {
    const { operator, own } = cloud;
    const { server, port } = await boot('four');
    const from = server['OS-EXT-SRV-ATTR:host'];
    await operator.migrate(server.id);
    const to = (await operator.server(server.id))['OS-EXT-SRV-ATTR:host'];
    expect([from, to].sort()).toEqual(Object.keys(computes));
    await operator.resize(server.id, 'medium');
    await operator.revert(server.id);
    await operator.remove(server.id);
    await own.send('neutron', 'DELETE', `/ports/${port.id}`);
    expect(await cloud.contents()).toEqual([]);
  });

  it('refuse tokens that have expired, and give out others', async () => {
    const response = await fetch(`${cloud.authUrl}/auth/tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        auth: {
          identity: {
            methods: ['application_credential'],
            application_credential: cloud.applicationCredential,
          },
        },
      }),
    });
    const token = response.headers.get('x-subject-token') ?? '';
    const { token: of } = (await response.json()) as Answer;
    const url = of.catalog.find(({ type }: Answer) => type === 'compute').endpoints[0].url;
    const ask = async (): Promise<number> =>
      (await fetch(`${url}/servers`, { headers: { 'x-auth-token': token } })).status;
    expect(await ask()).toBe(200);
    await cloud.expireTokens();
    expect(await ask()).toBe(401);
    expect(await cloud.contents()).toEqual([]);
  });

  it('show a host that was killed as down, and its machines stay while it is', async () => {
    const { server, port } = await boot('five', { availability_zone: 'az1' });
    await cloud.killCompute('cn1');
    await cloud.shown('cn1', 'down');
    expect((await cloud.operator.server(server.id)).status).toBe('ACTIVE');
    await cloud.restart('nova-api');
    await cloud.startCompute('cn1');
    expect((await cloud.operator.server(server.id)).status).toBe('ACTIVE');
    await cloud.operator.stop(server.id);
    await cloud.operator.remove(server.id);
    await cloud.own.send('neutron', 'DELETE', `/ports/${port.id}`);
    expect(await cloud.contents()).toEqual([]);
  });
});

it('a guest of a host with libvirt boots, has its address, and is logged into by SSH with the key of its user data', async () => {
  await using compute = await startLibvirtCompute(cloud);
  const { sshKeys, guest } = guestLogin();
  const config = { hostname: 'six', users: [{ name: 'debian', ssh_authorized_keys: sshKeys }] };
  const userData = `#cloud-config\n${JSON.stringify(config)}`;
  const { server, port } = await boot('six', {
    availability_zone: compute.zone,
    imageRef: compute.image,
    config_drive: true,
    user_data: Buffer.from(userData).toString('base64'),
  }).catch((error: Error) => {
    throw new Error(`${error.message}\n${compute.log()}`);
  });
  const [{ ip_address: publicIp }] = port.fixed_ips;
  const machine = { ref: 'six', endpoint: { publicIp, sshPort: 22, sshUsername: 'debian' } } as never;
  const hostname = async (): Promise<string | undefined> =>
    guest.run?.(machine, 'hostname').catch(() => undefined);
  await expect
    .poll(hostname)
    .toBe('six\n')
    .catch((error: Error) => {
      throw new Error(`${error.message}\n${compute.console(server.id)}`);
    });
  await cloud.operator.remove(server.id);
  await cloud.own.send('neutron', 'DELETE', `/ports/${port.id}`);
  expect(await cloud.contents()).toEqual([]);
});
