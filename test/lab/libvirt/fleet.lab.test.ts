import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LabServer, nameOf } from '../lab-server.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { catalogOf, offer, platformOf } from './platform.ts';
import { openSshWay, type SshWay } from './ssh-host.ts';

let hosts: [LabHost, LabHost];
let way: SshWay;
let server: LabServer;

/** The first host is reached by its socket and has NAT, the second by OpenSSH, and its machines are on a bridge. */
beforeEach(async () => {
  hosts = [await openLabHost(1), await openLabHost(2)];
  way = await openSshWay(hosts[1]);
  execFileSync('ip', ['route', 'add', '192.168.150.0/24', 'via', hosts[1].address]);
  const { hosts: [first, second] = [], ...platform } = platformOf(hosts);
  const network = { mode: 'bridged', bridge: 'virbr-berth', address_from: 'arp' };
  const remote = { ...second, uri: way.uri, network, state_dir: '/run/berth' };
  server = new LabServer(catalogOf(3), { ...platform, hosts: [first, remote] }, offer);
  await server.start();
});
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  await way?.[Symbol.asyncDispose]();
  for (const host of hosts ?? []) await host.close();
});

const create = (): Promise<string> => server.create();
const hostOf = (path: string): number =>
  hosts.findIndex((host) => host.virsh('list', '--all', '--name').includes(nameOf(path)));
/** Creates machines until one is on that host: a host that is slow to answer gets none. */
async function createOn(host: number): Promise<string> {
  for (;;) {
    const path = await create();
    await expect.poll(() => hostOf(path)).not.toBe(-1);
    if (hostOf(path) === host) return path;
    await server.destroy(path);
  }
}
const statusOf = async (path: string) => (await server.client.request('GET', path)).body['status'];
/** `down`: packets to the host are dropped silently. */
const cable = (state: 'down' | 'up'): Buffer => execFileSync('ip', ['link', 'set', 'lab2', state]);

it('sells machines of two hosts, one of them over OpenSSH and on a bridge, and rides out the loss of that one [libvirt-fleet]', async () => {
  const { client } = server;
  const first = await create();
  await expect.poll(() => hostOf(first)).not.toBe(-1);
  // The emptier host gets the second.
  const paths = [first, await createOn(1 - hostOf(first))];
  const machines = await Promise.all(paths.map((path) => client.waitFor(path, 'ONLINE')));
  for (const machine of machines)
    expect(await server.login(machine, 'id -un')).toMatchObject({ stdout: 'debian\n' });
  const at = paths.findIndex((path) => hostOf(path) === 1);
  const [remote = ''] = paths.slice(at);
  expect(machines[at]).toMatchObject({ ssh_port: 22 });
  expect(machines[at]?.['public_ip']).toMatch(/^192\.168\.150\./);

  await client.request('POST', `${remote}/stop`);
  await client.waitFor(remote, 'STOPPED');
  await client.request('POST', `${remote}/start`);
  await client.waitFor(remote, 'ONLINE');
  // All these calls needed few logins.
  expect(way.logins()).toBeLessThan(5);

  // While the second host cannot be reached, its machines stay as they were, and machines of the first come and go.
  cable('down');
  const third = await create();
  await client.waitFor(third, 'ONLINE');
  expect(hostOf(third)).toBe(0);
  expect(await statusOf(remote)).toBe('ONLINE');
  expect(await client.request('DELETE', remote)).toMatchObject({ status: 200 });
  await server.destroy(third);
  expect(hostOf(remote)).toBe(1);

  cable('up');
  execFileSync('ip', ['route', 'replace', '192.168.150.0/24', 'via', hosts[1].address]);
  await Promise.all(paths.map((path) => server.destroy(path)));
  // On the bridge the address was leased by the network's own server, which ends that by itself.
  const left = () => hosts.flatMap((host) => host.contents()).filter((one) => !one.includes('192.168.150.'));
  await expect.poll(left).toEqual([]);
});
