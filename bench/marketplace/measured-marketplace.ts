import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ServerProcess } from '../support/server-process.ts';
import { storeDeployments, type WantedDeployments } from './stored-deployments.ts';

export interface StoredMarketplace {
  /** The path of its marketplace.yaml. */
  file: string;
  database: string;
  apiKey: string;
  /** Number of requests for an instance at its provider. */
  polls(): Promise<number>;
}

export interface MeasuredMarketplace extends StoredMarketplace {
  server: ServerProcess;
}

interface Options extends WantedDeployments {
  /** Interval between two polls of a deployment, in seconds. */
  intervalS: readonly [number, number];
  /** Creates an empty database; absent: a SQLite file. */
  createDatabase?: () => Promise<string>;
}

/** Runs `body` with a marketplace with these deployments and its only provider, each in its own process. */
export async function withMarketplace<T>(
  options: Options,
  body: (marketplace: MeasuredMarketplace) => Promise<T>,
): Promise<T> {
  return withStoredMarketplace(options, async (stored) => {
    const server = await ServerProcess.start(new URL('./marketplace-server.ts', import.meta.url), [
      stored.file,
      ...options.intervalS.map(String),
    ]);
    try {
      await catalogRead(server.port);
      return await body({ ...stored, server });
    } finally {
      await server.stop();
    }
  });
}

/** The same without the marketplace's server: the database, and the provider in its own process. */
async function withStoredMarketplace<T>(
  { createDatabase, ...stored }: Options,
  body: (marketplace: StoredMarketplace) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  let provider: ServerProcess | undefined;
  try {
    const database = (await createDatabase?.()) ?? `sqlite:${join(folder, 'marketplace.db')}`;
    const { apiKey } = await storeDeployments(database, stored);
    provider = await ServerProcess.start(new URL('./provider-server.ts', import.meta.url), []);
    const providerUrl = `http://127.0.0.1:${provider.port}/v1`;
    const file = join(folder, 'marketplace.yaml');
    writeFileSync(
      file,
      `server: { port: 0 }
database: ${database}
providers:
  - { id: provider-b, base_url: '${providerUrl}', api_key_env: BENCH_KEY, allow_private: true, verify_ssh: false }
team_limits: { deployments: null, volumes: null, volume_gb: null }
rate_limits: false
log_level: error
`,
    );
    return await body({ file, database, apiKey, polls: () => pollsAt(providerUrl) });
  } finally {
    await provider?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Resolves once the marketplace has its provider's catalog. */
async function catalogRead(port: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/gpu-offers`);
    const { data } = (await answer.json()) as { data: unknown[] };
    if (data.length > 0) return;
    await pause(20);
  }
}

async function pollsAt(providerUrl: string): Promise<number> {
  const answer = await fetch(`${providerUrl}/polls`);
  return ((await answer.json()) as { polls: number }).polls;
}
