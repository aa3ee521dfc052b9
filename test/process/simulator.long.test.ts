import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { type Client, createClient } from '../support/http/http-client.ts';
import {
  BerthProcess,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';

const env = { BERTH_SIMULATOR_TOKEN: 'a-token-for-the-tests' };

async function startSimulator(
  folder: string,
  port = '0',
): Promise<{ process: BerthProcess; address: string }> {
  const args = [
    '--config',
    writeFastConfig(join(folder, 'platform')),
    '--state',
    join(folder, 'platform.db'),
  ];
  const process = new BerthProcess(['simulator', '--json', '--port', port, ...args], { env });
  const line = await process.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  return { process, address: String(JSON.parse(line)['base_url']) };
}

/** A server of its own account and database on the platform at `address`. */
async function startServer(folder: string, address: string): Promise<ServingProcess> {
  mkdirSync(folder, { recursive: true });
  const config = writeFastConfig(folder, { address });
  return startServing(['--config', config], { env });
}

async function buy(client: Client): Promise<Record<string, unknown>> {
  const body = { configuration_id: 'cpu-4x16', region: 'us-ashburn', ssh_keys: [newPublicKey()] };
  const { status, body: instance } = await client.request('POST', '/instances', { body });
  expect(status).toBe(201);
  return client.waitFor(`/instances/${instance['id']}`, 'ONLINE');
}

it('keeps its machines when a server is killed, and when it is killed itself', async () => {
  using folder = temporaryFolder();
  const first = await startSimulator(folder.path);
  await using _first = first.process;
  const server = await startServer(join(folder.path, 'server'), first.address);
  await using _server = server;
  const client = createClient(server.baseUrl, server.apiKey);
  const instance = await buy(client);
  const path = `/instances/${instance['id']}`;

  await first.process.end('SIGKILL');
  expect((await client.request('GET', path)).body).toMatchObject({ status: 'ONLINE' });
  const second = await startSimulator(folder.path, new URL(first.address).port);
  await using _second = second.process;
  await client.request('POST', `${path}/stop`);
  await client.waitFor(path, 'STOPPED');
  await client.request('POST', `${path}/start`);
  expect(await client.waitFor(path, 'ONLINE')).toMatchObject({ ssh_port: instance['ssh_port'] });

  await server.end('SIGKILL');
  const again = await startServer(join(folder.path, 'server'), second.address);
  await using _again = again;
  const anew = createClient(again.baseUrl, server.apiKey);
  expect((await anew.request('GET', path)).body).toMatchObject({ status: 'ONLINE' });
  await anew.request('DELETE', path);
  await anew.waitFor(path, 'GONE');
  expect(await second.process.end()).toMatchObject({ code: 0 });
});

it('says at its start whether its state is new, and its files are readable by their owner alone', async () => {
  using folder = temporaryFolder();
  const state = join(folder.path, 'made', 'platform.db');
  const args = ['--config', writeFastConfig(folder.path), '--state', state];
  const start = async (): Promise<string> => {
    await using process = new BerthProcess(['simulator', '--port', '0', ...args]);
    const line = await process.waitForOutput((stdout) => /^The simulator answers.*$/m.exec(stdout)?.[0]);
    await process.end();
    return line;
  };
  expect(await start()).toMatch(`, with a new state ${state}`);
  expect(await start()).toMatch(`, with its state ${state} (machines: 0)`);

  await using berth = await startServing(['--config', writeFastConfig(folder.path)]);
  const data = join(folder.path, 'data');
  const made = [dirname(state), state, data, ...readdirSync(data).map((name) => join(data, name))];
  expect(made).toContain(join(data, 'berth.db-wal'));
  expect(made.filter((path) => (statSync(path).mode & 0o077) !== 0)).toEqual([]);
  expect(await berth.end()).toMatchObject({ code: 0 });
});
