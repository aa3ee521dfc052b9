import { copyFileSync } from 'node:fs';
import { startOrchestrator } from '../../src/compose/orchestrator/orchestrator.ts';
import type { ReconcileChanges } from '../../src/compose/orchestrator/platforms.ts';
import { loadConfig } from '../../src/config/load.ts';
import { refuseWire } from '../../src/orchestrator/http/errors.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { backUpDatabase } from '../../src/store/sqlite/backup.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { steadyRandom } from './doubles/random.ts';
import { assertKeepsContract } from './http/contract.ts';
import { serveInProcess } from './http/in-process-server.ts';
import { fastReconcile, type TestOrchestrator } from './orchestrator.ts';

export interface RestoredOptions {
  reconcile?: ReconcileChanges;
  wrapDriver?: (driver: PlatformDriver) => PlatformDriver;
  probe?: SshProbe;
  /** Changes the database before it is started from. */
  prepare?: (store: Store) => Promise<void>;
  clock?: Clock;
}

export interface LogLine {
  fields: Record<string, unknown>;
  message: string;
}

/** Copies the database of an orchestrator that runs; returns how to start another one from the copy, on its platform. */
export async function backUp(first: TestOrchestrator) {
  const backup = `${first.databasePath}.backup`;
  await backUpDatabase(first.databasePath, backup, Date.now());
  return (options: RestoredOptions = {}) => startFrom(first, backup, options);
}

let lives = 0;

async function startFrom(first: TestOrchestrator, backup: string, options: RestoredOptions) {
  const path = `${first.databasePath}.life-${++lives}`;
  copyFileSync(backup, path);
  const store = openSqliteStore(path);
  await options.prepare?.(store);
  return startOn(first, store, options);
}

/** Starts an orchestrator on the platform of `first`, with a store of its own. */
export async function startOn(
  first: TestOrchestrator,
  store: Store,
  { reconcile, probe, wrapDriver = (driver) => driver, clock = first.clock }: RestoredOptions = {},
) {
  const lines: LogLine[] = [];
  const collect = (fields: object, message: string) => void lines.push({ fields: { ...fields }, message });
  const { config } = loadConfig({ flags: {}, env: {} });
  const orchestrator = await startOrchestrator({
    config: { ...config, rate_limits: false },
    reconcile: { ...fastReconcile(clock), ...reconcile },
    store,
    clock,
    random: steadyRandom(),
    catalog: first.catalog,
    environmentKey: undefined,
    drivers: new Map([['default', wrapDriver(first.driver)]]),
    probe,
    log: { debug: () => undefined, info: collect, warn: collect, error: collect },
    failpoint: () => undefined,
  });

  const server = serveInProcess(orchestrator.listener, refuseWire, clock);

  /** The status of a GET, and the resource's where there is one. */
  async function read(path: string): Promise<string> {
    const response = await server.fetch(`/v1${path}`, {
      headers: { Authorization: `Bearer ${first.key}` },
    });
    const body = await response.text();
    const contentType = response.headers.get('content-type');
    assertKeepsContract({ method: 'GET', path: `/v1${path}`, status: response.status, contentType, body });
    return response.status === 200 ? String(JSON.parse(body).status ?? 200) : String(response.status);
  }

  /** Sends a request that must succeed; the id in its reply, if there is one. */
  async function send(method: string, path: string, body?: unknown): Promise<string> {
    const response = await server.fetch(`/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${first.key}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return String(JSON.parse(text || '{}').id);
  }

  return {
    store,
    lines,
    read,
    send,
    fetch: server.fetch,
    async [Symbol.asyncDispose](): Promise<void> {
      await server.close();
      await orchestrator.close();
      await store.close();
    },
  };
}
