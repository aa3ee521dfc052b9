import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKeyPair, type KeyPair } from '../../support/processes/openssh.ts';
import { runBerth } from '../../support/processes/process.ts';
import { anOrder } from '../../support/rows/orchestrator-rows.ts';
import { LabServer, nameOf } from '../lab-server.ts';
import { catalogOf, offer, region } from './catalog.ts';
import { type Cluster, image, startCluster, tenants } from './cluster.ts';
import { lan, waitFor } from './node.ts';

let cluster: Cluster;
let server: LabServer;

beforeAll(async () => {
  cluster = await startCluster();
  server = new LabServer(
    catalogOf(image.name),
    cluster.platform({ overcommit: { cpu: 8, disk: 40 } }),
    offer,
  );
  await server.start();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

const create = (more?: object): Promise<string> => server.create(more);
const online = (path: string) => server.online(path);
const nothingIsLeft = () => expect.poll(() => cluster.contents()).toEqual([]);
const hostOf = async (path: string) => (await cluster.api.instance(nameOf(path)))?.location;
const nodeOf = async (path: string) => {
  const location = await hostOf(path);
  const node = cluster.nodes.find(({ name }) => name === location);
  if (node === undefined) throw new Error(`${path} is on ${location}`);
  return node;
};

const TEXT = 'on the disk';
const idOf = (path: string): string => path.split('/').at(-1) ?? '';
const alarms = async () => (await runBerth(['alarms', 'ls', '--config', server.config])).stdout;
const incus = (...args: string[]): string => cluster.nodes[0].run('incus', ...args);
const machines = async () => (await cluster.contents()).filter((one) => one.startsWith('instance '));
const isUnderWay = ({ status_code: code }: { status_code: number }): boolean => code < 200;

/** Machines that are stopped, each with a text on its disk. */
async function stoppedMachines(count: 3): Promise<[string, string, string]>;
async function stoppedMachines(count: number): Promise<string[]> {
  const paths = await Promise.all(Array.from({ length: count }, () => create()));
  for (const path of paths)
    expect(await server.login(await online(path), `echo ${TEXT} >text; sync`)).toMatchObject({ code: 0 });
  await Promise.all(paths.map((path) => server.client.request('POST', `${path}/stop`)));
  await Promise.all(paths.map((path) => server.client.waitFor(path, 'STOPPED')));
  return paths;
}

async function startsWithText(path: string): Promise<void> {
  await server.client.request('POST', `${path}/start`);
  expect(await server.login(await online(path), 'cat text')).toMatchObject({ stdout: `${TEXT}\n` });
}

/**
 * Starts the machine whenever it is STOPPED, until a login answers `text`. An evacuation and a power loss stop machines,
 * and Berth may see that late, or while its own stop of a machine that Incus started again is under way.
 */
const comesBack = (path: string, command: string, text: string) =>
  expect
    .poll(async () => {
      const { body } = await server.client.request('GET', path);
      if (body['status'] === 'STOPPED') await server.client.request('POST', `${path}/start`);
      return body['status'] === 'ONLINE' ? (await server.login(body, command)).stdout : body['status'];
    })
    .toBe(text);

/** For how long at most the offer was not available. */
function watchSale(): { end: () => Promise<number> } {
  let isOver = false;
  const watching = (async () => {
    let longestMs = 0;
    for (let soldAt = Date.now(); !isOver; await sleep(250)) {
      const { body } = await server.client.request('GET', '/availability');
      if ((body['configurations'] as unknown[]).length > 0) soldAt = Date.now();
      longestMs = Math.max(longestMs, Date.now() - soldAt);
    }
    return longestMs;
  })();
  return {
    end() {
      isOver = true;
      return watching;
    },
  };
}

describe('the life of a machine', () => {
  it('goes from a create with everything to nothing that is left [incus-life]', async () => {
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
            content: 'quotes \' and " and 東京\n',
            owner: 'debian:debian',
            permissions: '0600',
          },
        ],
        runcmd: ['echo ran as $(id -un) > /opt/app/ran.txt'],
      },
    });
    const machine = await online(path);
    const login = (command: string, key?: KeyPair) => server.login(machine, command, key);
    for (const key of server.keys) expect(await login('id -un', key)).toMatchObject({ stdout: 'debian\n' });
    expect(await login('true', await generateKeyPair(server.folder, 'ed25519'))).toMatchObject({ code: 255 });
    expect(machine['port_forwards']).toHaveLength(2);

    await login('cloud-init status --wait');
    const files = await login('sudo stat -c "%n %a %U" /opt/app/*; sudo cat /opt/app/*; hostname');
    expect(files.stdout).toMatch(/hello.txt 640 root\n.*mine.txt 600 debian\n.*ran.txt 644 root\n/);
    expect(files.stdout).toContain(`from cloud-init\nquotes ' and " and 東京\nran as root\ntrainer-one-`);

    await server.client.request('POST', `${volumePath}/attach`, { body: { instance_ids: [machine['id']] } });
    await server.client.waitFor(volumePath, 'ATTACHED');
    const mount = `/mnt/${nameOf(volumePath)}`;
    await login(`echo on the volume | sudo tee ${mount}/text; echo on the disk > text; sync`);

    await server.client.request('POST', `${path}/stop`);
    await server.client.waitFor(path, 'STOPPED');
    expect(await login('true')).toMatchObject({ code: 255 });
    await server.client.request('POST', `${path}/start`);
    const again = await online(path);
    expect([again['public_ip'], again['ssh_port']]).toEqual([machine['public_ip'], machine['ssh_port']]);
    expect((await login(`cat text; sudo cat ${mount}/text`)).stdout).toBe('on the disk\non the volume\n');

    await server.client.request('POST', `${volumePath}/detach`);
    await server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await login(`sudo cat ${mount}/text`)).toMatchObject({ code: 1 });

    // The next one goes to another member, and the volume after it.
    const elsewhere = await create();
    const other = await online(elsewhere);
    expect(await hostOf(elsewhere)).not.toBe(await hostOf(path));
    await server.client.request('POST', `${volumePath}/attach`, { body: { instance_ids: [other['id']] } });
    await server.client.waitFor(volumePath, 'ATTACHED');
    expect((await server.login(other, `sudo cat ${mount}/text`, server.keys[1])).stdout).toBe(
      'on the volume\n',
    );

    await Promise.all([server.destroy(path), server.destroy(elsewhere)]);
    await server.client.waitFor(volumePath, 'AVAILABLE');
    expect(await server.client.request('DELETE', volumePath)).toMatchObject({ status: 204 });
    await nothingIsLeft();
  });

  it('keeps tenants from each other and from the hosts [incus-isolation]', async () => {
    const paths = await Promise.all(Array.from({ length: 4 }, () => create()));
    const machines = await Promise.all(paths.map(online));
    const hosts = await Promise.all(paths.map(hostOf));
    const [first] = machines;
    if (first === undefined) throw new Error('there is no machine');
    // Of four machines on three members two are neighbours.
    const index = hosts.findIndex((host, at) => hosts.indexOf(host) < at);
    const [a, b] = [machines[hosts.indexOf(hosts[index])], machines[index]];
    if (a === undefined || b === undefined) throw new Error(`they are on ${hosts}`);
    const addressOfB = (await server.login(b, 'hostname -I')).stdout.trim().split(' ')[0];
    /** Which of them answer, all tried at once. */
    const reached = async (targets: readonly string[]): Promise<string[]> => {
      const tries = targets.map((target) => `(timeout 3 bash -c '</dev/tcp/${target}' && echo ${target}) &`);
      const { stdout } = await server.login(a, `{ ${tries.join(' ')} wait; } 2>/dev/null; true`);
      return stdout.trim().split('\n').sort();
    };
    const hostAddresses = [tenants.gateway, lan.gateway, ...cluster.nodes.map(({ address }) => address)];
    const services = hostAddresses.flatMap((host) => [22, 53, 8443].map((port) => `${host}/${port}`));
    // DNS and DHCP of the bridge are meant for them.
    expect(await reached(['127.0.0.1/22', `${addressOfB}/22`, ...services])).toEqual(
      [`${tenants.gateway}/53`, '127.0.0.1/22'].sort(),
    );
    // An address that is not its own gets no answer, whatever root in the machine does.
    const stolen = `sudo ip addr add ${addressOfB}/24 dev eth0; timeout 3 bash -c '</dev/tcp/${tenants.gateway}/53' && echo open; true`;
    expect((await server.login(a, stolen)).code).toBe(0);
    expect(await server.login(b, 'echo still here')).toMatchObject({ stdout: 'still here\n' });
    await Promise.all(paths.map((path) => server.destroy(path)));
    await nothingIsLeft();
  });
});

describe('what happens behind the back', () => {
  it('takes a machine that was stopped for STOPPED, one that was deleted for lost, and touches no other', async () => {
    const devices = { root: { type: 'disk', path: '/', pool: 'local' } };
    const body = {
      name: 'berth-foreign',
      type: 'container',
      source: { type: 'none' },
      profiles: [],
      devices,
    };
    await cluster.api.client.send('POST', '/1.0/instances', { query: { target: 'n1' }, body });
    const [stopped, deleted] = await Promise.all([create(), create()]);
    await Promise.all([online(stopped), online(deleted)]);
    const { client } = cluster.api;
    const force = { action: 'stop', force: true, timeout: -1 };
    for (const path of [stopped, deleted])
      await client.send('PUT', `/1.0/instances/${nameOf(path)}/state`, { body: force });
    await waitFor(
      'it is stopped',
      async () => (await cluster.api.instance(nameOf(deleted)))?.status_code === 102,
    );
    await client.send('DELETE', `/1.0/instances/${nameOf(deleted)}`, { order: anOrder });
    await server.client.waitFor(stopped, 'STOPPED');
    await server.client.waitFor(deleted, 'OFFLINE', 'ERROR', 'GONE');
    await server.client.request('POST', `${stopped}/start`);
    await online(stopped);
    await Promise.all([server.destroy(stopped), server.destroy(deleted)]);
    await expect.poll(() => cluster.contents()).toEqual(['instance berth-foreign']);
    await client.send('DELETE', '/1.0/instances/berth-foreign', { order: anOrder });
    await nothingIsLeft();
  });

  it('follows a stopped machine that was renamed, moved or copied, with its data, and leaves the copy alone [incus-renamed-moved-copied]', async () => {
    const [renamed, moved, copied] = await stoppedMachines(3);
    const [from] = await Promise.all([hostOf(moved), hostOf(renamed)]);
    const target = cluster.nodes.find(({ name }) => name !== from)?.name ?? '';
    incus('rename', nameOf(renamed), 'db-of-the-shop');
    incus('copy', nameOf(copied), 'copy-of-it');
    incus('move', nameOf(moved), '--target', target);
    await expect.poll(alarms).toMatch(new RegExp(`resource_renamed +${idOf(renamed)} .*db-of-the-shop`, 's'));
    await expect.poll(alarms).toMatch(/resource_copied +copy-of-it /);
    for (const path of [renamed, moved, copied])
      expect((await server.client.request('GET', path)).body).toMatchObject({ status: 'STOPPED' });
    await Promise.all([renamed, moved, copied].map(startsWithText));
    expect(await hostOf(moved)).toBe(target);
    await Promise.all([renamed, moved, copied].map((path) => server.destroy(path)));
    await expect.poll(() => cluster.contents()).toEqual(['instance copy-of-it']);
    incus('delete', 'copy-of-it');
    await expect.poll(alarms).not.toMatch(/resource_renamed|resource_copied/);
    await nothingIsLeft();
  });

  it('knows a member that is evacuated and restored to have its machines still, with their data [incus-evacuated-lab]', async () => {
    const path = await create();
    expect(await server.login(await online(path), `echo ${TEXT} >text; sync`)).toMatchObject({ code: 0 });
    const member = await hostOf(path);
    for (const action of ['evacuate', 'restore']) {
      incus('cluster', action, String(member), '--force');
      await expect.poll(async () => (await cluster.api.operations()).filter(isUnderWay)).toEqual([]);
      await comesBack(path, 'cat text', `${TEXT}\n`);
      const host = await hostOf(path);
      expect(host === member).toBe(action === 'restore');
    }
    await server.destroy(path);
    await nothingIsLeft();
  });

  it('goes on with a create whose daemon was killed while it unpacked the image, also in a database from before [incus-killed-in-create]', async () => {
    await cluster.forgetUnpackedImage();
    const path = await create();
    await waitFor(
      'it is being made',
      async () => (await cluster.api.instance(nameOf(path)).catch(() => undefined)) !== undefined,
    );
    const backup = join(server.folder, 'backup');
    const withConfig = ['--config', server.config];
    expect(await runBerth(['backup', backup, ...withConfig])).toMatchObject({ code: 0 });
    const node = await nodeOf(path);
    await node.killIncus();
    await node.startIncus();
    // What was interrupted cannot be completed: it is made under the next name.
    const machine = await online(path);
    const later = `instance ${nameOf(path)}-g1`;
    await expect.poll(machines).toEqual([later]);
    expect(await server.login(machine, `echo ${TEXT} >text; sync`)).toMatchObject({ code: 0 });
    await server.kill();
    expect(await runBerth(['restore', backup, ...withConfig])).toMatchObject({ code: 0 });
    await server.start();
    expect(await server.login(await online(path), 'cat text')).toMatchObject({ stdout: `${TEXT}\n` });
    expect(await machines()).toEqual([later]);
    await server.destroy(path);
    await nothingIsLeft();
  });

  it('sells on while a member is down with its machines, concludes nothing of them, and goes on when it is back [incus-member-lost]', async () => {
    const paths = await Promise.all([create(), create(), create()]);
    await Promise.all(paths.map(online));
    // Not the member that leads: the rest goes on at once.
    const leader = (await cluster.api.client.get('/1.0/cluster/members', { recursion: '1' })).metadata as {
      server_name: string;
      roles: string[];
    }[];
    const leading = leader.find(({ roles }) => roles.includes('database-leader'))?.server_name;
    const node = cluster.nodes.find(({ name }) => name !== leading && name !== 'n1');
    if (node === undefined) throw new Error(`${leading} leads`);
    const sale = watchSale();
    await node.powerOff();
    // From the first moment on: Incus itself takes the member for online still.
    const fresh = await create();
    await cluster.shown(node.name, 'Offline');
    for (const path of paths)
      expect(await server.client.request('GET', path)).toMatchObject({ body: { status: 'ONLINE' } });
    await online(fresh);
    expect(await hostOf(fresh)).not.toBe(node.name);
    const closedMs = await sale.end();
    expect(closedMs).toBeLessThan(10_000);
    await node.powerOn();
    await node.startIncus();
    await cluster.shown(node.name, 'Online');
    await Promise.all([...paths, fresh].map((path) => comesBack(path, 'echo up', 'up\n')));
    for (const path of [...paths, fresh]) await server.destroy(path);
    await nothingIsLeft();
  });
});

describe('the conformance suite', () => {
  it('finds berth serve on Incus CONFORMANT at level full [incus-conformance]', async () => {
    await server.expectConformant('--poll-interval-ms', '500', '--race', 'small=6');
    await nothingIsLeft();
  });
});
