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
    const alarms = async () => (await runBerth(['alarms', 'ls', '--config', server.config])).stdout;
    await expect.poll(alarms).toMatch(/machine_paused .*frozen/s);
    expect(await server.client.request('GET', path)).toMatchObject({ body: { status: 'ONLINE' } });
    node.run('incus', 'resume', nameOf(path));
    expect(await server.login(again, 'echo in')).toMatchObject({ stdout: 'in\n' });
    await server.destroy(path);
    await server.client.waitFor(volume, 'AVAILABLE');
    expect(await server.client.request('DELETE', volume)).toMatchObject({ status: 204 });
    await nothingIsLeft();
  });

  it('is CONFORMANT at the level lifecycle [incus-single-conformance]', async () => {
    await server.expectConformant('--level', 'lifecycle', '--poll-interval-ms', '500');
    await nothingIsLeft();
  });
});
