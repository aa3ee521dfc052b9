import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundledCatalogFile, loadCatalog } from '../../src/config/load.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { freePort } from '../support/free-port.ts';
import { embeddedPostgres, postgresDatabase, type SoakDatabase, sqliteDatabase } from './database.ts';
import { Platform, Replica } from './processes.ts';

/** Short, so that a minute sees many of them end. */
export const LEASE_MS = 3_000;

export interface Setting extends AsyncDisposable {
  database: SoakDatabase;
  platform: Platform;
  replicas: readonly Replica[];
  catalog: Catalog;
  /** Where the logs are. Kept by `keep`, for who looks into a loss. */
  folder: string;
  keep(): void;
}

/** A database, a simulator and servers, all of them started. `database`: undefined makes a PostgreSQL of its own. */
export async function startSetting(given: {
  database: string | undefined;
  replicaCount: number;
}): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-soak-'));
  await using stack = new AsyncDisposableStack();
  let isKept = false;
  const remove = (): void => {
    if (!isKept) rmSync(folder, { recursive: true, force: true });
  };
  stack.defer(remove);
  process.once('exit', remove);
  const database = stack.use(await openDatabase(given.database, folder));
  const port = await freePort();
  const config = join(folder, 'berth.yaml');
  writeFileSync(config, toConfig(port));

  const platform = new Platform(folder, config, port);
  stack.defer(() => void platform.end('SIGKILL'));
  await platform.start();
  const replicas = Array.from(
    { length: given.replicaCount },
    (_, index) => new Replica(`replica-${index + 1}`, folder, config, database.url),
  );
  stack.defer(async () => {
    await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
  });
  for (const replica of replicas) await replica.start();
  const owned = stack.move();
  return {
    database,
    platform,
    replicas,
    folder,
    catalog: loadCatalog(bundledCatalogFile()),
    keep: () => {
      isKept = true;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openDatabase(url: string | undefined, folder: string): Promise<SoakDatabase> {
  if (url === undefined) return embeddedPostgres();
  return url === 'sqlite' ? sqliteDatabase(join(folder, 'berth.db')) : postgresDatabase(url);
}

function toConfig(port: number): string {
  return `platform:
  address: http://127.0.0.1:${port}
  boot_ms: [100, 600]
  stop_ms: [50, 300]
  start_ms: [100, 500]
  destroy_ms: [50, 300]
  volume_ms: [20, 200]
reconcile: { watch_interval_s: 1, ssh_probe_interval_s: 0.5, lease_s: ${LEASE_MS / 1000}, orphan_grace_s: 30 }
rate_limits: { enabled: false }
log: { level: info }
`;
}
