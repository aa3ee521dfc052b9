import { expect, it } from 'vitest';
import { runBerth } from '../../support/processes/process.ts';
import { LabServer, nameOf } from '../lab-server.ts';
import { IMAGES } from './lab-host.ts';
import { catalogOf, offer, platformOf } from './platform.ts';
import { serveEachTest } from './serving.ts';
import { openSshWay } from './ssh-host.ts';

const lab = serveEachTest();
const { create, online, login, nothingIsLeft } = lab;

const TEXT = 'on the disk';
const alarms = async () => (await runBerth(['alarms', 'ls', '--config', lab.server.config])).stdout;
const idOf = (path: string): string => path.split('/').at(-1) ?? '';
/** What is open for it, with its last failure. */
const problemOf = async (path: string) =>
  (await runBerth(['instances', 'show', idOf(path), '--config', lab.server.config])).stdout;
const post = (path: string) => lab.server.client.request('POST', path);
const statusOf = async (path: string) => (await lab.server.client.request('GET', path)).body['status'];

/** Machines that are stopped, each with a text on its disk. */
async function stoppedMachines(count: number): Promise<string[]> {
  const paths = await Promise.all(Array.from({ length: count }, () => create()));
  for (const path of paths) {
    const machine = await online(path);
    expect(await login(machine, `echo ${TEXT} >text; sync`)).toMatchObject({ code: 0 });
  }
  await Promise.all(paths.map((path) => post(`${path}/stop`)));
  await Promise.all(paths.map((path) => lab.server.client.waitFor(path, 'STOPPED')));
  return paths;
}

async function startsWithText(path: string): Promise<void> {
  await post(`${path}/start`);
  expect(await login(await online(path), 'cat text')).toMatchObject({ stdout: `${TEXT}\n` });
}

/** As virt-clone does: another name, UUID and address, and a disk of its own where `disk` copies it. */
function cloneOf(domain: string, clone: string, disk: 'copied' | 'shared'): void {
  const { host } = lab;
  const xml = host
    .virsh('dumpxml', '--inactive', domain)
    .replace(`<name>${domain}</name>`, `<name>${clone}</name>`)
    .replace(/<uuid>.*<\/uuid>/, '')
    .replace(/<mac address=.*\/>/, '');
  if (disk === 'copied') host.virsh('vol-clone', '--pool', 'berth', `${domain}.qcow2`, `${clone}.qcow2`);
  const own = disk === 'copied' ? xml.replaceAll(`${domain}.qcow2`, `${clone}.qcow2`) : xml;
  host.run('sh', '-c', 'printf %s "$1" >/run/clone.xml', 'clone', own);
  host.virsh('define', '/run/clone.xml');
}

it('follows a machine that was renamed or undefined and defined again: its data stay, and its DELETE works [libvirt-renamed]', async () => {
  const { host, server } = lab;
  const [renamed = '', undefined_ = ''] = await stoppedMachines(2);
  host.virsh('domrename', nameOf(renamed), 'db-of-the-shop');
  const definition = host.virsh('dumpxml', '--inactive', nameOf(undefined_));
  host.virsh('undefine', nameOf(undefined_));
  await expect.poll(alarms).toMatch(new RegExp(`resource_renamed +${idOf(renamed)} .*db-of-the-shop`, 's'));
  await expect.poll(alarms).toMatch(new RegExp(`leftover +${nameOf(undefined_)} `));
  expect(await Promise.all([renamed, undefined_].map(statusOf))).toEqual(['STOPPED', 'STOPPED']);
  host.run('sh', '-c', 'printf %s "$1" >/run/domain.xml', 'domain', definition);
  host.virsh('define', '/run/domain.xml');
  await expect.poll(alarms).not.toContain('leftover');
  await Promise.all([renamed, undefined_].map(startsWithText));
  expect(await alarms()).toContain('resource_renamed');
  await Promise.all([renamed, undefined_].map((path) => server.destroy(path)));
  await expect.poll(alarms).not.toContain('resource_renamed');
  await nothingIsLeft();
});

it('leaves a clone of a machine alone, also one that shares its disk [libvirt-cloned]', async () => {
  const { host, server } = lab;
  const [copied = '', shared = ''] = await stoppedMachines(2);
  cloneOf(nameOf(copied), 'clone-a', 'copied');
  cloneOf(nameOf(shared), 'clone-b', 'shared');
  for (const name of ['clone-a', 'clone-b'])
    await expect.poll(alarms).toMatch(new RegExp(`resource_copied +${name} `));
  await startsWithText(copied);
  const sumOf = (file: string): string => host.run('sha256sum', `${IMAGES}/${file}`).split(' ')[0] ?? '';
  const [before, sharedBefore] = [sumOf('clone-a.qcow2'), sumOf(`${nameOf(shared)}.qcow2`)];
  await server.destroy(copied);
  await server.client.request('DELETE', shared);
  await expect.poll(() => problemOf(shared)).toContain('clone-b');
  expect(await statusOf(shared)).toBe('DESTROYING');
  expect([sumOf('clone-a.qcow2'), sumOf(`${nameOf(shared)}.qcow2`)]).toEqual([before, sharedBefore]);
  expect(host.virsh('list', '--all', '--name')).toMatch(/clone-a\s+clone-b/);
  host.virsh('undefine', 'clone-b');
  await server.client.waitFor(shared, 'GONE');
  host.virsh('undefine', 'clone-a');
  host.virsh('vol-delete', '--pool', 'berth', 'clone-a.qcow2');
  await nothingIsLeft();
});

it('a server with a copy of the database takes the host over, until a restore is recorded [libvirt-two-writers]', async () => {
  const { server } = lab;
  await using copy = await server.startCopy();
  await expect.poll(alarms).toContain('platform_taken');
  const refused = await server.client.request('POST', '/instances', { body: server.request() });
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'capacity_unavailable' } } });
  await copy.destroy(await copy.create());
  await Promise.all([copy.kill(), server.kill()]);
  expect(await runBerth(['restore', '--in-place', '--config', server.config])).toMatchObject({ code: 0 });
  await server.start();
  await expect.poll(alarms).not.toContain('platform_taken');
  await nothingIsLeft();
});

it('a stopped QEMU process, and a pool that is full or read-only: an alarm for the machine, and the others go on [libvirt-halted-lab]', async () => {
  const { host } = lab;
  await lab.server.kill();
  // A shell of the host: that of the lab sees neither its files nor its mounts.
  await using way = await openSshWay(host);
  const { hosts: [local] = [], ...platform } = platformOf([host]);
  const remote = { ...local, uri: way.uri, state_dir: '/run/berth' };
  await using server = new LabServer(catalogOf(2), { ...platform, hosts: [remote] }, offer);
  await server.start();
  const [halted, other] = await Promise.all([server.create(), server.create()]);
  await Promise.all([halted, other].map((path) => server.online(path)));
  const fault = async () => {
    const { stdout } = await runBerth(['alarms', 'ls', '--config', server.config]);
    return new RegExp(`machine_fault +${idOf(halted)} .*`).exec(stdout)?.[0] ?? '';
  };
  const signal = (name: string) =>
    host.run('sh', '-c', `kill -${name} "$(cat /run/libvirt/qemu/${nameOf(halted)}.pid)"`);

  signal('STOP');
  await expect.poll(fault).toContain('kill -CONT');
  await server.client.request('POST', `${other}/stop`);
  await server.client.waitFor(other, 'STOPPED');
  signal('CONT');
  await expect.poll(fault).toBe('');

  host.run('mount', '--bind', IMAGES, IMAGES);
  host.run('mount', '-o', 'remount,bind,ro', IMAGES);
  await expect.poll(fault).toContain('read-only');
  host.run('umount', IMAGES);
  await expect.poll(fault).toBe('');

  const [size = ''] = host.run('findmnt', '-bno', 'SIZE', '/var/lib/libvirt').match(/\d+/) ?? [];
  const used = Number(host.run('df', '-k', '--output=used', IMAGES).match(/\d+/)?.[0]);
  host.run('mount', '-o', `remount,size=${used + 50_000}k`, '/var/lib/libvirt');
  await expect.poll(fault).toContain('is full');
  host.run('mount', '-o', `remount,size=${size}`, '/var/lib/libvirt');
  await expect.poll(fault).toBe('');

  signal('STOP');
  await server.destroy(halted);
  await server.destroy(other);
  await nothingIsLeft();
});
