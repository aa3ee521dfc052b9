import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Client, createClient } from '../support/http/http-client.ts';
import { generateKeyPair, type KeyPair, ssh } from '../support/processes/openssh.ts';
import {
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { PATIENCE_MS } from '../support/time/until.ts';

const folder = temporaryFolder();
let berth: ServingProcess;
let client: Client;

beforeAll(async () => {
  berth = await startServing(['--config', writeFastConfig(folder.path)], { cwd: folder.path });
  client = createClient(berth.baseUrl, berth.apiKey);
});
afterAll(async () => {
  await berth?.end('SIGKILL');
  folder[Symbol.dispose]();
});

describe('the life of an instance, with an HTTP client and OpenSSH', () => {
  const offer = { configuration_id: 'h100-sxm-2x', region: 'us-ashburn' };
  let keys: [KeyPair, KeyPair];
  let path: string;
  let volumePath: string;
  let online: Record<string, unknown>;

  const login = (command: string, key: KeyPair = keys[0]) => ssh(online, key, command);

  it('is created with two keys, a file and a volume, and answers PROVISIONING at once', async () => {
    keys = await Promise.all([
      generateKeyPair(folder.path, 'ed25519'),
      generateKeyPair(folder.path, 'ecdsa'),
    ]);
    const volume = await client.request('POST', '/volumes', {
      body: { name: 'data', size_gb: 50, region: offer.region },
    });
    expect(volume.status).toBe(201);
    volumePath = `/volumes/${volume.body['id']}`;
    await client.waitFor(volumePath, 'AVAILABLE');
    const created = await client.request('POST', '/instances', {
      body: {
        ...offer,
        name: 'Trainer One',
        ssh_keys: keys.map(({ publicKey }) => publicKey),
        volume_ids: [volume.body['id']],
        cloud_init: {
          write_files: [{ path: '/opt/app/hello.txt', content: 'from cloud-init\n', permissions: '0644' }],
          runcmd: ['echo ran > /opt/app/ran.txt'],
        },
      },
    });
    expect(created).toMatchObject({ status: 201, body: { status: 'PROVISIONING', ...offer } });
    path = `/instances/${created.body['id']}`;
  });

  it('comes ONLINE with both keys working and no other', async () => {
    online = await client.waitFor(path, 'ONLINE');
    for (const key of keys) expect(await login('echo in', key)).toMatchObject({ code: 0, stdout: 'in\n' });
    const stranger = await generateKeyPair(folder.path, 'ed25519');
    const refused = await login('echo in', stranger);
    expect(refused).toMatchObject({ code: 255, stdout: '' });
    expect(refused.stderr).toContain('Permission denied');
  });

  it('is the machine that was asked for', async () => {
    const gpus = (await login('nvidia-smi -L')).stdout.trim().split('\n');
    expect(gpus).toHaveLength(2);
    expect(gpus[0]).toMatch(/^GPU 0: NVIDIA H100/);
    expect((await login('hostname')).stdout).toMatch(/^trainer-one-[0-9a-f]{8}\n$/);
    expect((await login('cloud-init status --wait')).stdout).toContain('status: done');
    expect((await login('cat /opt/app/hello.txt /opt/app/ran.txt')).stdout).toBe('from cloud-init\nran\n');
  });

  it('keeps its disk, address and volume over stop and start', async () => {
    await client.waitFor(volumePath, 'ATTACHED');
    const mounted = (await login('ls /mnt')).stdout.trim();
    expect(await login(`echo kept > /mnt/${mounted}/note; echo mine > /home/ubuntu/note`)).toMatchObject({
      code: 0,
    });
    expect(await client.request('POST', `${path}/stop`)).toMatchObject({
      status: 200,
      body: { status: 'STOPPING' },
    });
    await client.waitFor(path, 'STOPPED');
    expect(await login('echo in')).toMatchObject({ code: 255 });
    expect(await client.request('POST', `${path}/start`)).toMatchObject({ status: 200 });
    const again = await client.waitFor(path, 'ONLINE');
    expect(again).toMatchObject({ public_ip: online['public_ip'], ssh_port: online['ssh_port'] });
    expect((await login(`cat /mnt/${mounted}/note /home/ubuntu/note /opt/app/ran.txt`)).stdout).toBe(
      'kept\nmine\nran\n',
    );
  });

  it('keeps them over a restart, which takes what was in memory, and stays ONLINE', async () => {
    const mounted = (await login('ls /mnt')).stdout.trim();
    await login('echo x > /run/note');
    expect(await client.request('POST', `/x${path}/restart`)).toMatchObject({
      status: 200,
      body: { status: 'ONLINE', ssh_port: online['ssh_port'] },
    });
    await vi.waitFor(async () => {
      expect((await client.request('GET', path)).body['status']).toBe('ONLINE');
      expect((await client.request('GET', `/x${path}/restart`)).body).toEqual({ restarting: false });
    }, PATIENCE_MS);
    expect(await client.request('GET', path)).toMatchObject({
      body: { public_ip: online['public_ip'], ssh_port: online['ssh_port'] },
    });
    expect((await login(`cat /mnt/${mounted}/note /home/ubuntu/note; ls /run/note`)).stdout).toBe(
      'kept\nmine\n',
    );
  });

  it('gives its volume away and takes it back with what is on it', async () => {
    const mounted = (await login('ls /mnt')).stdout.trim();
    expect(await client.request('POST', `${volumePath}/detach`)).toMatchObject({ status: 200 });
    await client.waitFor(volumePath, 'AVAILABLE');
    expect((await login('ls /mnt')).stdout).toBe('');
    const instanceIds = [online['id']];
    expect(
      await client.request('POST', `${volumePath}/attach`, { body: { instance_ids: instanceIds } }),
    ).toMatchObject({ status: 200 });
    expect(await client.waitFor(volumePath, 'ATTACHED')).toMatchObject({
      attached_instance_ids: instanceIds,
    });
    expect((await login(`cat /mnt/${mounted}/note`)).stdout).toBe('kept\n');
  });

  it('is DESTROYING, then 404 for good, its SSH closed, while the volume lives on', async () => {
    expect(await client.request('DELETE', path)).toMatchObject({
      status: 200,
      body: { status: 'DESTROYING' },
    });
    await client.waitFor(path, 'GONE');
    expect((await client.request('DELETE', path)).status).toBe(404);
    expect((await client.request('GET', path)).status).toBe(404);
    expect((await client.request('GET', '/instances')).body).toEqual({ instances: [] });
    expect(await login('echo in')).toMatchObject({ code: 255 });
    await client.waitFor(volumePath, 'AVAILABLE');
  });

  it('leaves a volume whose data the next instance finds [openssh-volume-data]', async () => {
    const { body } = await client.request('POST', '/instances', {
      body: {
        ...offer,
        ssh_keys: [keys[1].publicKey],
        volume_ids: [volumePath.split('/').at(-1)],
      },
    });
    online = await client.waitFor(`/instances/${body['id']}`, 'ONLINE');
    await client.waitFor(volumePath, 'ATTACHED');
    const mounted = (await login('ls /mnt', keys[1])).stdout.trim();
    const found = await login(`cat /mnt/${mounted}/note /home/ubuntu/note`, keys[1]);
    expect(found).toMatchObject({ code: 1, stdout: 'kept\n' });
    expect((await client.request('DELETE', volumePath)).status).toBe(409);
    await client.request('DELETE', `/instances/${body['id']}`);
    await client.waitFor(`/instances/${body['id']}`, 'GONE');
    await client.waitFor(volumePath, 'AVAILABLE');
    expect((await client.request('DELETE', volumePath)).status).toBe(204);
    await client.waitFor(volumePath, 'GONE');
  });
});
