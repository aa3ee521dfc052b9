import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newPublicKey } from '../../test/support/doubles/ssh-keys.ts';
import {
  addRichTeam,
  MARKETPLACE_ENV,
  OFFER,
  readyUrl,
  startProvider,
  writeMarketplaceConfig,
} from '../../test/support/processes/marketplace.ts';
import { BerthProcess } from '../../test/support/processes/process.ts';
import { BenchClient } from '../support/client.ts';
import { LifecycleCalls } from './calls.ts';

export interface MarketOptions {
  /** The checkout that the servers run. */
  checkout: string;
  /** Creates an empty database; undefined: a SQLite file. */
  createDatabase: (() => Promise<string>) | undefined;
  servers: number;
  deployments: number;
}

const SIZE_GB = 10;
const POLL_MS = 100;

/** Starts a marketplace in real processes, with a provider that carries out each request at once. */
export async function startMarket(
  options: MarketOptions,
): Promise<AsyncDisposable & { calls: LifecycleCalls }> {
  const { checkout, createDatabase, servers: count, deployments } = options;
  const entry = join(checkout, 'src', 'main.ts');
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const database = (await createDatabase?.()) ?? `sqlite:${join(folder, 'marketplace.db')}`;
  const immediately = { bootMs: 0, stopMs: 0, startMs: 0, restartMs: 0, deleteMs: 0, volumeMs: 0 };
  const provider = stack.use(await startProvider(immediately));
  const config = writeMarketplaceConfig(folder, {
    database,
    providerUrl: provider.baseUrl,
    more: 'log: { level: error }\n',
  });
  const baseUrls: string[] = [];
  for (let number = 0; number < count; number++) {
    const args = ['marketplace', '--json', '--port', '0', '--config', config];
    baseUrls.push(await readyUrl(stack.use(new BerthProcess(args, { entry, env: MARKETPLACE_ENV }))));
  }
  const [baseUrl = ''] = baseUrls;
  const { apiKey } = await addRichTeam({ config, baseUrl, entry }, 'bench@berth.example');
  const clients = baseUrls.map((url) =>
    stack.adopt(new BenchClient({ port: Number(new URL(url).port), apiKey, connections: 4 }), (client) =>
      client.close(),
    ),
  );
  await Promise.all(clients.map(sells));
  const [client] = clients as [BenchClient];
  const things = {
    deploymentIds: await deploy(client, deployments),
    volumeId: await createVolume(client),
    sizeGb: SIZE_GB,
  };
  const owned = stack.move();
  return {
    calls: new LifecycleCalls(clients, things),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Resolves once the server has its provider's catalog. */
async function sells(client: BenchClient): Promise<void> {
  for (;;) {
    const { data } = JSON.parse(await client.read('/api/gpu-offers')) as { data: unknown[] };
    if (data.length > 0) return;
    await pause(POLL_MS);
  }
}

/** Creates deployments, waits until all run, and returns their ids. */
async function deploy(client: BenchClient, count: number): Promise<string[]> {
  const body = JSON.stringify({
    ...OFFER,
    gpuCount: 1,
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key: newPublicKey(),
  });
  const ids: string[] = [];
  for (let number = 0; number < count; number++)
    ids.push((await create<{ id: string }>(client, '/api/deployments', body)).id);
  for (const id of ids) await until(client, `/api/deployments/${id}`, 'running');
  return ids;
}

async function createVolume(client: BenchClient): Promise<string> {
  const { provider, region } = OFFER;
  const body = JSON.stringify({ name: 'bench', sizeInGb: SIZE_GB, provider, region });
  const { volumeId } = await create<{ volumeId: string }>(client, '/api/volumes', body);
  await until(client, `/api/volumes/${volumeId}`, 'available');
  return volumeId;
}

async function create<T>(client: BenchClient, path: string, body: string): Promise<T> {
  const { status, text } = await client.send('POST', path, body);
  if (status !== 201) throw new Error(`POST ${path} is answered ${status}: ${text.slice(0, 300)}`);
  return JSON.parse(text) as T;
}

async function until(client: BenchClient, path: string, wanted: string): Promise<void> {
  for (;;) {
    const { status } = JSON.parse(await client.read(path)) as { status: string };
    if (status === wanted) return;
    await pause(POLL_MS);
  }
}
