import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { IncusApi } from '../../../src/drivers/incus/api.ts';
import { IncusClient } from '../../../src/drivers/incus/client.ts';
import { blocksOf, readPage, shellBlocksOf } from '../../documents/pages.ts';
import { runBerth } from '../../support/processes/process.ts';
import { LabServer, nameOf } from '../lab-server.ts';
import { catalogOf, offer, region } from './catalog.ts';
import { contentsOf, imageFile, ip, type Lan, Node, openLan } from './node.ts';

/** A host with one incusd that is in no cluster, set up by the commands of the how-to, with its berth.yaml. */
const page = readPage('docs/how-to/incus.md');
const [yaml = ''] = blocksOf('yaml', page);
const { platform } = parse(yaml);
/** What the lab has no Internet or space for, and what takes its place. */
const OFFLINE: readonly [string, string][] = [
  ['images:ubuntu/24.04/cloud', 'downloaded'],
  ['100GiB', '8GiB'],
  ['apt-get update && apt-get install -y openssh-server && ', ''],
];
const commands = OFFLINE.reduce((text, [online, offline]) => {
  if (!text.includes(online)) throw new Error(`docs/how-to/incus.md has no ${online}`);
  return text.replaceAll(online, offline);
}, shellBlocksOf(page).join(''));

let network: Lan;
let node: Node;
let server: LabServer;
let api: IncusApi;

beforeAll(async () => {
  network = openLan();
  node = new Node(1, network);
  await node.powerOn();
  ip('route', 'add', platform.port_forwards.addresses.none, 'via', node.address);
  await node.startIncus();
  node.run('ip', 'addr', 'add', `${platform.port_forwards.addresses.none}/32`, 'dev', 'eth0');
  node.run('incus', 'image', 'import', imageFile, '--alias', 'downloaded');
  node.run('incus', 'config', 'set', 'images.compression_algorithm', 'none');
  server = new LabServer(catalogOf('ubuntu-24.04'), platform, offer);
  node.run('sh', '-euc', `cd ${server.folder}; ${commands}`);
  api = new IncusApi(new IncusClient({ addresses: [`unix:${node.socket}`], project: 'default' }));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await api?.client.close();
  await network?.close([node]);
});

const nothingIsLeft = () =>
  expect.poll(() => contentsOf(api, platform.storage_pool, platform.network)).toEqual([]);
const doctor = () => runBerth(['doctor', '--config', server.config]);
const alarms = async () => (await runBerth(['alarms', 'ls', '--config', server.config])).stdout;

describe('a single daemon, set up by the commands of docs/how-to/incus.md', () => {
  it('has nothing that berth doctor calls broken [incus-single-doctor]', async () => {
    const { code, stdout, stderr } = await doctor();
    expect(stdout + stderr).not.toContain('BROKEN');
    expect(code).toBe(0);
    // A lab host may lack the memory controller for control groups; then the doctor reports it.
    const warnings = node.run('incus', 'query', '/1.0/warnings?recursion=1');
    const isMissing = warnings.includes("Couldn't find the CGroup memory controller");
    expect(stdout.includes('memory limits')).toBe(isMissing);
  });

  it('that hangs is called broken, with a remedy, within 20 s [incus-single-hangs]', async () => {
    const send = (signal: string) => node.run('sh', '-c', `kill -${signal} $(pidof incusd)`);
    send('STOP');
    const startedAt = performance.now();
    const { code, stdout } = await doctor().finally(() => send('CONT'));
    expect(stdout).toMatch(/BROKEN .*connection to https:.*\n +→ Check platform.address/);
    expect(code).toBe(1);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  it('makes, stops, starts, restarts and removes machines, with a volume [incus-single-life]', async () => {
    await server.start();
    const { body } = await server.client.request('POST', '/volumes', {
      body: { name: 'data', size_gb: 1, region },
    });
    const volume = `/volumes/${body['id']}`;
    const path = await server.create();
    const machine = await server.online(path);
    expect(machine['public_ip']).toBe(platform.port_forwards.addresses.none);
    expect(await server.login(machine, 'id -un')).toMatchObject({ stdout: 'ubuntu\n' });

    await server.client.request('POST', `${volume}/attach`, { body: { instance_ids: [machine['id']] } });
    await server.client.waitFor(volume, 'ATTACHED');
    const file = `/mnt/${nameOf(volume)}/text`;
    await server.login(machine, `echo on the volume | sudo tee ${file}; sync`);
    await server.client.request('POST', `${path}/stop`);
    await server.client.waitFor(path, 'STOPPED');
    await server.client.request('POST', `${path}/start`);
    expect((await server.login(await server.online(path), `sudo cat ${file}`)).stdout).toBe(
      'on the volume\n',
    );
    await server.client.request('POST', `${path}/restart`);
    const again = await server.online(path);

    // An alarm at once; STOPPED only after a minute.
    node.run('incus', 'pause', nameOf(path));
    await expect.poll(alarms).toMatch(/machine_paused .*frozen/s);
    expect(await server.client.request('GET', path)).toMatchObject({ body: { status: 'ONLINE' } });
    node.run('incus', 'resume', nameOf(path));
    expect(await server.login(again, 'echo in')).toMatchObject({ stdout: 'in\n' });
    await server.destroy(path);
    await server.client.waitFor(volume, 'AVAILABLE');
    expect(await server.client.request('DELETE', volume)).toMatchObject({ status: 204 });
    await nothingIsLeft();
  });

  it('a server with a copy of the database takes it over, until a restore is recorded [incus-two-writers]', async () => {
    await using copy = await server.startCopy();
    await expect.poll(alarms).toContain('platform_taken');
    const refused = await server.client.request('POST', '/instances', { body: server.request() });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'capacity_unavailable' } } });
    await copy.destroy(await copy.create());
    await Promise.all([copy.kill(), server.kill()]);
    expect(await runBerth(['restore', '--in-place', '--config', server.config])).toMatchObject({ code: 0 });
    await server.start();
    await expect.poll(alarms).not.toContain('platform_taken');
  });

  it('a create in the midst of which the daemon was killed is made again on it [incus-single-killed]', async () => {
    const path = await server.create();
    await expect.poll(async () => (await api.instanceNames()).length).toBe(1);
    await node.killIncus();
    await node.startIncus();
    const machine = await server.online(path);
    expect(await server.login(machine, 'id -un')).toMatchObject({ stdout: 'ubuntu\n' });

    // Incus refuses: the reason names the key, and the delete goes on once it is off.
    const [name = ''] = await api.instanceNames();
    node.run('incus', 'config', 'set', name, 'security.protection.delete=true');
    await server.client.request('DELETE', path);
    const shown = async () =>
      (await runBerth(['instances', 'show', String(machine['id']), '--config', server.config])).stdout;
    await expect.poll(shown).toContain('security.protection.delete=false');
    node.run('incus', 'config', 'set', name, 'security.protection.delete=false');
    await server.client.waitFor(path, 'GONE');
    await nothingIsLeft();
  });

  it('a pool that has room for metadata alone is full: an alarm for each machine, and nothing is sold [incus-full-pool]', async () => {
    const path = await server.create();
    await server.online(path);
    const pool = `${node.folder}/state/storage-pools/${platform.storage_pool}`;
    const restart = async (): Promise<void> => {
      await server.kill();
      await server.start();
    };
    // What was removed before is free once the file system has cleaned up.
    const fill = `fill() { for size in 500M 50M 5M 1M 100K; do n=0; while fallocate -l $size "fill.$size.$n" 2>/dev/null; do n=$((n + 1)); done; done; sync; }
      cd "$1"; btrfs subvolume sync . >/dev/null; sync; fill; fill`;
    node.run('sh', '-euc', fill, 'fill', pool);
    // It reads the pools at its start, and then once a minute.
    await restart();
    await expect.poll(alarms).toMatch(new RegExp(`machine_fault +${path.split('/').at(-1)} .* is full`));
    expect((await server.client.request('GET', '/availability')).body).toEqual({ configurations: [] });
    node.run('sh', '-c', 'rm "$1"/fill.*', 'rm', pool);
    await restart();
    await expect.poll(alarms).not.toContain('machine_fault');
    await server.destroy(path);
    await nothingIsLeft();
  });

  it('is CONFORMANT at the level lifecycle [incus-single-conformance]', async () => {
    await server.expectConformant('--level', 'lifecycle', '--poll-interval-ms', '500');
    await nothingIsLeft();
  });
});
