import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKeyPair, type KeyPair, ssh } from '../../support/processes/openssh.ts';
import { runBerth } from '../../support/processes/process.ts';
import { LabServer, nameOf } from '../lab-server.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { catalog, offer, platformOf, region } from './platform.ts';

let host: LabHost;
let server: LabServer;
let keys: [KeyPair, KeyPair];

beforeAll(async () => {
  host = await openLabHost(1, ['tiny', 'cloud-init']);
  server = new LabServer(catalog, platformOf([host]));
  await server.start();
  keys = [await generateKeyPair(server.folder, 'ed25519'), await generateKeyPair(server.folder, 'ecdsa')];
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await host?.close();
});

type Machine = Record<string, unknown>;

const create = (more: object = {}): Promise<string> =>
  server.create({ ...offer, ssh_keys: keys.map(({ publicKey }) => publicKey), ...more });
const online = (path: string): Promise<Machine> => server.client.waitFor(path, 'ONLINE');
const login = (machine: Machine, command: string, key = keys[0]) => ssh(machine, key, command);

/** Domains, files and rules of the host, but for images and what guards the bridge. */
function contents(): string[] {
  const words = (text: string): string[] =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  host.virsh('pool-refresh', 'berth');
  return [
    ...words(host.virsh('list', '--all', '--name')),
    ...words(host.run('ls', '/var/lib/libvirt/images/berth')).filter(
      (name) => !/^(tiny|cloud-init)\.qcow2$/.test(name),
    ),
    ...words(host.run('nft', 'list', 'tables')).filter((table) => /berth_\d/.test(table)),
    ...words(host.virsh('net-dhcp-leases', 'berth')),
  ];
}
const nothingIsLeft = () => expect.poll(contents).toEqual([]);

describe('the life of a machine', () => {
  it('goes from a create with everything to nothing that is left [libvirt-life]', async () => {
    const volume = await server.client.request('POST', '/volumes', {
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
    for (const key of keys) expect(await login(machine, 'id -un', key)).toMatchObject({ stdout: 'debian\n' });
    expect(await login(machine, 'true', await generateKeyPair(server.folder, 'ed25519'))).toMatchObject({
      code: 255,
    });
    expect(machine['port_forwards']).toHaveLength(1);
    const files = await login(machine, 'stat -c "%n %a %U" /opt/app/*; cat /opt/app/*; hostname');
    expect(files.stdout).toMatch(/hello.txt 644 root\n.*mine.txt 600 debian\n.*ran.txt 644 root\n/);
    expect(files.stdout).toContain(`from cloud-init\nquotes ' and " and 東京\nran as root\ntrainer-one-`);

    await login(machine, 'echo on the disk >text; sync');
    await server.client.request('POST', `${path}/stop`);
    await server.client.waitFor(path, 'STOPPED');
    await server.client.request('POST', `${path}/start`);
    const again = await online(path);
    expect([again['public_ip'], again['ssh_port']]).toEqual([machine['public_ip'], machine['ssh_port']]);
    expect(await login(again, 'cat text')).toMatchObject({ stdout: 'on the disk\n' });

    // Root finds the volume by its serial, writes, and another machine reads what was written.
    const disk = `for d in /sys/block/vd*; do grep -q ${String(volume.body['id']).slice(0, 20)} $d/serial && echo /dev/\${d##*/}; done`;
    // A guest sees a new disk in its own time.
    const found = `n=0; d=; while [ -z "$d" ] && [ $n -lt 60 ]; do d=$(${disk}); n=$((n + 1)); sleep 0.5; done`;
    const attach = async (to: Machine): Promise<void> => {
      await server.client.request('POST', `${volumePath}/attach`, { body: { instance_ids: [to['id']] } });
      await server.client.waitFor(volumePath, 'ATTACHED');
    };
    const [first, second] = await Promise.all([
      create({ image: 'tiny-root' }),
      create({ image: 'tiny-root' }),
    ]);
    const [one, two] = await Promise.all([online(first), online(second)]);
    await attach(one);
    expect(
      await login(one, `${found}; echo on the volume | dd of=$d bs=512 conv=sync && sync`),
    ).toMatchObject({ code: 0 });
    await server.client.request('POST', `${volumePath}/detach`);
    await server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await login(one, disk)).toMatchObject({ stdout: '' });
    await attach(two);
    expect((await login(two, `${found}; head -n 1 $d`)).stdout).toBe('on the volume\n');

    await Promise.all([path, first, second].map((each) => server.destroy(each)));
    await server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await server.client.request('DELETE', volumePath)).toMatchObject({ status: 204 });
    await nothingIsLeft();
  });

  it('is the same for a real cloud-init guest [libvirt-cloud-init]', async () => {
    const path = await create({
      configuration_id: 'debian',
      cloud_init: {
        write_files: [
          { path: '/opt/mine.txt', content: 'mine\n', owner: 'debian:debian', permissions: '0600' },
        ],
        runcmd: ['echo ran >/opt/ran.txt'],
      },
    });
    const machine = await online(path);
    await login(machine, 'cloud-init status --wait');
    const { stdout } = await login(
      machine,
      'id -un; stat -c "%a %U" /opt/mine.txt; sudo cat /opt/mine.txt /opt/ran.txt',
      keys[1],
    );
    expect(stdout).toBe('debian\n600 debian\nmine\nran\n');
    await server.destroy(path);
    await nothingIsLeft();
  });
});

it('keeps tenants from each other and from the host [libvirt-isolation]', async () => {
  const paths = await Promise.all([create({ image: 'tiny-root' }), create({ image: 'tiny-root' })]);
  const [a, b] = (await Promise.all(paths.map(online))) as [Machine, Machine];
  const own = async (of: Machine): Promise<string> =>
    (await login(of, "ip -4 -o addr show dev eth0 | sed 's/.*inet \\([0-9.]*\\).*/\\1/'")).stdout.trim();
  const [addressOfA, addressOfB] = [await own(a), await own(b)];
  const reaches = async (address: string, port: number): Promise<boolean> =>
    (await login(a, `nc -w 3 ${address} ${port} </dev/null >/dev/null 2>&1 && echo open; true`)).stdout ===
    'open\n';
  const listener = host.enter('sh', '-c', 'while nc -l -p 8888 -q 0 >/dev/null 2>&1 </dev/null; do :; done');
  expect(listener[0]).toBe('nsenter');
  expect(await reaches('127.0.0.1', 22)).toBe(true);
  expect(await reaches('192.168.150.1', 53)).toBe(true);
  expect(await reaches(addressOfB, 22)).toBe(false);
  for (const address of ['192.168.150.1', host.address]) {
    for (const port of [22, 8888])
      expect([address, port, await reaches(address, port)]).toEqual([address, port, false]);
  }
  // Nor by way of the gateway, nor with the other's address.
  expect(
    (
      await login(
        a,
        `ip route add ${addressOfB}/32 via 192.168.150.1; nc -w 3 ${addressOfB} 22 </dev/null; true`,
      )
    ).stdout,
  ).toBe('');
  await login(
    a,
    `ip route del ${addressOfB}/32; ip addr add ${addressOfB}/24 dev eth0; ping -c 1 -W 2 -I ${addressOfB} 192.168.150.1; ip addr del ${addressOfB}/24 dev eth0`,
  );
  expect(await login(b, `echo still ${addressOfA === addressOfB ? 'one' : 'here'}`)).toMatchObject({
    stdout: 'still here\n',
  });
  await Promise.all(paths.map((path) => server.destroy(path)));
  await nothingIsLeft();
});

describe('what happens behind the back', () => {
  it('takes a machine that was destroyed for STOPPED, one that was deleted for lost, and touches no other [libvirt-behind]', async () => {
    const foreign =
      "<domain type='qemu'><name>berth-foreign</name><memory unit='MiB'>64</memory><os><type arch='x86_64' machine='q35'>hvm</type></os></domain>";
    host.run('sh', '-c', 'printf %s "$1" >/run/foreign.xml', 'foreign', foreign);
    host.virsh('define', '/run/foreign.xml');
    const [stopped, deleted] = await Promise.all([create(), create()]);
    await Promise.all([online(stopped), online(deleted)]);
    host.virsh('destroy', nameOf(stopped));
    host.virsh('destroy', nameOf(deleted));
    host.virsh('undefine', nameOf(deleted));
    await server.client.waitFor(stopped, 'STOPPED');
    await server.client.waitFor(deleted, 'OFFLINE', 'ERROR', 'GONE');
    await server.client.request('POST', `${stopped}/start`);
    await online(stopped);
    await Promise.all([server.destroy(stopped), server.destroy(deleted)]);
    await expect.poll(contents).toEqual(['berth-foreign']);
    host.virsh('undefine', 'berth-foreign');
  });

  it('goes on with a create in the midst of which libvirtd was killed, and machines run on [libvirt-daemon-killed]', async () => {
    const running = await create();
    const machine = await online(running);
    const path = await create();
    await expect.poll(() => host.virsh('list', '--all', '--name')).toContain(nameOf(path));
    host.restartLibvirt();
    await online(path);
    expect(await login(machine, 'echo still here')).toMatchObject({ stdout: 'still here\n' });
    await Promise.all([running, path].map((each) => server.destroy(each)));
    await nothingIsLeft();
  });
});

describe('kill -9 of Berth at each moment [libvirt-kill-at-each-step]', () => {
  const moments = ['before-call', 'after-call', 'settled', 'after-call 2', 'after-call 3'];
  const failpointOf = (kind: string, moment: string) => {
    const [name = '', hit = '1'] = moment.split(' ');
    return { name: `${kind}:${name}`, hit: Number(hit) };
  };
  const insist = async (method: string, path: string): Promise<void> => {
    await expect
      .poll(async () => (await server.client.request(method, path).catch(() => undefined))?.status ?? 503)
      .not.toBe(503);
  };

  it.each(moments)('create:%s', async (moment) => {
    const failpoint = failpointOf('create', moment);
    await server.arm(failpoint);
    const headers = { 'Idempotency-Key': `create ${moment}` };
    const body = { ...offer, ssh_keys: keys.map(({ publicKey }) => publicKey) };
    const { body: made } = await server.client.request('POST', '/instances', { headers, body });
    await server.diedAndStart(failpoint);
    const path = `/instances/${made['id']}`;
    await online(path);
    expect(contents().filter((one) => one === nameOf(path))).toHaveLength(1);
    await server.destroy(path);
    await nothingIsLeft();
  });

  it('stop, start, restart and destroy', async () => {
    const path = await create();
    await online(path);
    for (const moment of ['before-call', 'after-call', 'settled'])
      for (const [kind, method, verb, to] of [
        ['stop', 'POST', `${path}/stop`, 'STOPPED'],
        ['start', 'POST', `${path}/start`, 'ONLINE'],
        ['restart', 'POST', `/x${path}/restart`, 'ONLINE'],
      ] as const) {
        const failpoint = failpointOf(kind, moment);
        await server.arm(failpoint);
        await insist(method, verb);
        await server.diedAndStart(failpoint);
        await server.client.waitFor(path, to);
        if (kind === 'restart')
          await expect
            .poll(async () => (await server.client.request('GET', verb)).body['restarting'])
            .toBe(false);
      }
    const failpoint = failpointOf('destroy', 'after-call');
    await server.arm(failpoint);
    await insist('DELETE', path);
    await server.diedAndStart(failpoint);
    await server.client.waitFor(path, 'GONE');
    await nothingIsLeft();
  });
});

it('has ten machines ONLINE that were created at once, or says that it is sold out [libvirt-ten]', async () => {
  const paths = await Promise.all(Array.from({ length: 10 }, () => create()));
  const began = performance.now();
  const seconds = await Promise.all(
    paths.map(async (path) => {
      await online(path);
      return Math.round((performance.now() - began) / 100) / 10;
    }),
  );
  const sorted = seconds.toSorted((x, y) => x - y);
  process.stdout.write(`ten machines at once: ONLINE after p50 ${sorted[4]} s, p95 ${sorted[9]} s\n`);
  await Promise.all(paths.map((path) => server.destroy(path)));
  await nothingIsLeft();
});

it('is CONFORMANT at level full [libvirt-conformance]', async () => {
  const { stdout } = await runBerth(['keys', 'create', '--json', '--config', server.config]);
  const { api_key: second } = JSON.parse(stdout) as { api_key: string };
  const ran = await runBerth(
    [
      ...['conformance', server.baseUrl, '--level', 'full', '--poll-interval-ms', '500', '--race', 'tiny=10'],
      ...['--max-cost', '40', '--yes', '--state-dir', `${server.folder}/state`, '--allow-private'],
    ],
    { cwd: server.folder, env: { BERTH_API_KEY: server.apiKey, BERTH_SECOND_API_KEY: second } },
  );
  expect(ran.stdout, ran.stderr).toMatch(/^CONFORMANT: /m);
  expect(ran.code).toBe(0);
  await nothingIsLeft();
});
