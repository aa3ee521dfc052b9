import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { generateKeyPair } from '../../support/processes/openssh.ts';
import { type Machine, nameOf } from '../lab-server.ts';
import { findDisk, region } from './platform.ts';
import { serveEachTest } from './serving.ts';

const lab = serveEachTest();
const { create, online, login, nothingIsLeft } = lab;

describe('the life of a machine', () => {
  it('goes from a create with everything to nothing that is left [libvirt-life]', async () => {
    const volume = await lab.server.client.request('POST', '/volumes', {
      body: { name: 'data', size_gb: 1, region },
    });
    const volumePath = `/volumes/${volume.body['id']}`;
    const path = await create({
      name: 'Trainer One',
      cloud_init: {
        write_files: [
          { path: '/opt/app/hello.txt', content: 'from cloud-init\n', permissions: '0640' },
          {
            path: '/opt/app/mine.txt',
            content: `quotes ' and " and 東京\n`,
            owner: 'debian:debian',
            permissions: '0600',
          },
        ],
        runcmd: ['echo ran as $(id -un) >/opt/app/ran.txt', 'chmod 0644 /opt/app/hello.txt'],
      },
    });
    const machine = await online(path);
    for (const key of lab.server.keys)
      expect(await login(machine, 'id -un', key)).toMatchObject({ stdout: 'debian\n' });
    expect(await login(machine, 'true', await generateKeyPair(lab.server.folder, 'ed25519'))).toMatchObject({
      code: 255,
    });
    expect(machine['port_forwards']).toHaveLength(1);
    const files = await login(machine, 'stat -c "%n %a %U" /opt/app/*; cat /opt/app/*; hostname');
    expect(files.stdout).toMatch(/hello.txt 644 root\n.*mine.txt 600 debian\n.*ran.txt 644 root\n/);
    expect(files.stdout).toContain(`from cloud-init\nquotes ' and " and 東京\nran as root\ntrainer-one-`);

    await login(machine, 'echo on the disk >text; sync');
    await lab.server.client.request('POST', `${path}/stop`);
    await lab.server.client.waitFor(path, 'STOPPED');
    expect(lab.host.consoleOf(nameOf(path)), 'it shut down by itself').toContain('Power down');
    await lab.server.client.request('POST', `${path}/start`);
    const again = await online(path);
    expect([again['public_ip'], again['ssh_port']]).toEqual([machine['public_ip'], machine['ssh_port']]);
    expect(await login(again, 'cat text')).toMatchObject({ stdout: 'on the disk\n' });

    // Root finds the volume by its serial, writes, and another machine reads what was written.
    const disk = String(volume.body['id']);
    const attach = async (to: Machine): Promise<void> => {
      await lab.server.client.request('POST', `${volumePath}/attach`, { body: { instance_ids: [to['id']] } });
      await lab.server.client.waitFor(volumePath, 'ATTACHED');
    };
    const [first, second] = await Promise.all([
      create({ operating_system_image: 'tiny-root' }),
      create({ operating_system_image: 'tiny-root' }),
    ]);
    const [one, two] = await Promise.all([online(first), online(second)]);
    await attach(one);
    expect(
      await login(one, `${findDisk(disk)}; echo on the volume | dd of=$d bs=512 conv=sync && sync`),
    ).toMatchObject({ code: 0 });
    await lab.server.client.request('POST', `${volumePath}/detach`);
    await lab.server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await login(one, `${findDisk(disk, 0)}; echo found $d`)).toMatchObject({ stdout: 'found\n' });
    await attach(two);
    expect((await login(two, `${findDisk(disk)}; head -n 1 $d`)).stdout).toBe('on the volume\n');

    await Promise.all([path, first, second].map((each) => lab.server.destroy(each)));
    await lab.server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await lab.server.client.request('DELETE', volumePath)).toMatchObject({ status: 204 });
    await nothingIsLeft();
  });
});

/** What each listener of the isolation test sends on a connection. */
const GREETING = 'reached';
const LISTEN = `require('node:net').createServer((socket) => socket.end('${GREETING}')).listen(8888, () => console.log('ready'))`;

it('keeps tenants from each other and from the host [libvirt-isolation]', async () => {
  const paths = await Promise.all([
    create({ operating_system_image: 'tiny-root' }),
    create({ operating_system_image: 'tiny-root' }),
  ]);
  const [a, b] = (await Promise.all(paths.map(online))) as [Machine, Machine];
  const [addressOfA, addressOfB] = [String(a['private_ip']), String(b['private_ip'])];
  expect(addressOfA).not.toBe(addressOfB);
  const connect = (address: string, port: number): string =>
    `nc -w 5 ${address} ${port} </dev/null 2>/dev/null; true`;
  const fromA = async (address: string, port: number) => (await login(a, connect(address, port))).stdout;
  const fromHost = (address: string, port: number) =>
    lab.host.run('busybox', 'sh', '-c', connect(address, port));

  const listener = spawn(...lab.host.enter(process.execPath, '-e', LISTEN), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const outside = createServer((socket) => socket.end(GREETING)).listen(8888, lab.host.outside);
  try {
    await Promise.all([once(listener.stdout, 'data'), once(outside, 'listening')]);
    // What is meant for them: their own, and the world outside the host.
    expect(await fromA('127.0.0.1', 22)).toMatch(/^SSH-/);
    expect(await fromA(lab.host.outside, 8888)).toBe(GREETING);
    for (const address of ['192.168.150.1', lab.host.address]) {
      expect([address, fromHost(address, 8888)]).toEqual([address, GREETING]);
      expect([address, await fromA(address, 8888)]).toEqual([address, '']);
    }
    expect(fromHost(addressOfB, 22)).toMatch(/^SSH-/);
    expect(await fromA(addressOfB, 22)).toBe('');
    // Nor by way of the gateway.
    await login(a, `ip route add ${addressOfB}/32 via 192.168.150.1`);
    expect(await fromA(addressOfB, 22)).toBe('');
    await login(a, `ip route del ${addressOfB}/32`);
    // Nor does anything leave with an address that is not its own, which would be answered to it.
    const stolen = '192.168.150.77';
    await login(a, `ip addr add ${stolen}/32 dev eth0`);
    const pingFrom = (source: string) => login(a, `ping -c 1 -W 5 -I ${source} ${lab.host.outside}`);
    expect((await pingFrom(addressOfA)).stdout).toContain('1 packets received');
    expect((await pingFrom(stolen)).stdout).toContain('0 packets received');
    expect(await login(b, 'echo still here')).toMatchObject({ stdout: 'still here\n' });
  } finally {
    listener.kill('SIGKILL');
    outside.close();
  }
  await Promise.all(paths.map((path) => lab.server.destroy(path)));
  await nothingIsLeft();
});

describe('what happens behind the back', () => {
  it('takes a machine that was destroyed for STOPPED, one that was deleted for lost, and touches no other [libvirt-behind]', async () => {
    const foreign =
      "<domain type='qemu'><name>berth-foreign</name><memory unit='MiB'>64</memory><os><type arch='x86_64' machine='q35'>hvm</type></os></domain>";
    lab.host.run('sh', '-c', 'printf %s "$1" >/run/foreign.xml', 'foreign', foreign);
    lab.host.virsh('define', '/run/foreign.xml');
    const [stopped, deleted] = await Promise.all([create(), create()]);
    await Promise.all([online(stopped), online(deleted)]);
    lab.host.virsh('destroy', nameOf(stopped));
    lab.host.virsh('destroy', nameOf(deleted));
    await lab.server.client.waitFor(deleted, 'STOPPED');
    lab.host.virsh('undefine', nameOf(deleted));
    await lab.server.client.waitFor(stopped, 'STOPPED');
    // Its disk is there: it is not lost, and its end was not requested.
    const disk = `${nameOf(deleted)}.qcow2`;
    await expect.poll(() => lab.server.log).toContain('parts of a machine or a volume of ours remain');
    expect(lab.host.contents()).toContain(disk);
    expect((await lab.server.client.request('GET', deleted)).body['status']).toBe('STOPPED');
    for (const file of lab.host.contents().filter((name) => name.startsWith(`${nameOf(deleted)}.`)))
      lab.host.virsh('vol-delete', '--pool', 'berth', file);
    await lab.server.client.waitFor(deleted, 'OFFLINE');
    await lab.server.client.request('POST', `${stopped}/start`);
    await online(stopped);
    await Promise.all([lab.server.destroy(stopped), lab.server.destroy(deleted)]);
    await expect.poll(() => lab.host.contents()).toEqual(['berth-foreign']);
    lab.host.virsh('undefine', 'berth-foreign');
  });

  it('goes on with a create in the midst of which libvirtd was killed, and machines run on [libvirt-daemon-killed]', async () => {
    const running = await create();
    const machine = await online(running);
    const path = await create();
    await expect.poll(() => lab.host.virsh('list', '--all', '--name')).toContain(nameOf(path));
    lab.host.restartLibvirt();
    await online(path);
    expect(await login(machine, 'echo still here')).toMatchObject({ stdout: 'still here\n' });
    await Promise.all([running, path].map((each) => lab.server.destroy(each)));
    await nothingIsLeft();
  });
});
