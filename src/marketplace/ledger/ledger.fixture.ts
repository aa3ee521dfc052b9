import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { steadyRandom } from '../../../test/support/doubles/random.ts';
import { now, runningDeployment, seed, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { putEmptyDatabase } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import type { Deps } from '../deps.ts';
import { priceFor } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { defaultOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { startBilling } from './segments.ts';

/** A log entry. */
export type LogLine = { level: string; fields: object; message: string };

/** A marketplace store with `team-1`, and the other dependencies of the use cases. Removed after the test. */
export async function openBooks(balanceMicroUsd = 0) {
  const { store, file } = await openFile();
  return { ...(await booksOf(store, balanceMicroUsd)), file };
}

async function openFile(): Promise<{ store: Store; file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-books-'));
  const file = join(folder, 'marketplace.db');
  await putEmptyDatabase('marketplace', file);
  const store = openMarketplaceSqliteStore(file);
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return { store, file };
}

/** {@link openBooks} in an empty database that the caller closes. */
export async function booksOf(store: Store, balanceMicroUsd = 0) {
  const lines: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  await seed(store, balanceMicroUsd);
  const deps: BookDeps = {
    store,
    clock: new VirtualClock(now),
    random: steadyRandom(),
    log,
    options: { ...defaultOptions, billing: { ...defaultOptions.billing, sliceMs: 3_600_000 } },
  };
  return {
    ...deps,
    deps,
    lines,
    /** Adds a deployment that runs and is billed from now on. */
    run: (changes: Partial<DeploymentRecord> = {}) => runDeployment(deps, changes),
    /** Adds a volume that is available and billed from now on. */
    keep: (changes: Partial<VolumeRecord> = {}) => keepVolume(deps, changes),
    /** Confirms the record as of now, as its provider would. */
    observe: (id: string) => observe(deps, id),
  };
}

export type Books = Awaited<ReturnType<typeof openBooks>>;

type BookDeps = Pick<Deps, 'store' | 'random' | 'log' | 'options'> & { clock: VirtualClock };

async function runDeployment(deps: BookDeps, changes: Partial<DeploymentRecord>): Promise<DeploymentRecord> {
  const at = deps.clock.now();
  return deps.store.transact(async (tx) => {
    const record = runningDeployment({ startedAt: at, observedAt: at, createdAt: at, ...changes });
    const price = await priceFor(tx, record.teamId, record.originalRateMicroUsd, at);
    const { rateMicroUsd, discountPercentage } = price;
    const { id: subjectId, teamId } = record;
    await tx.deployments.insert({ ...record, rateMicroUsd, discountPercentage });
    await startBilling(deps, tx, {
      subjectKind: 'deployment',
      subjectId,
      teamId,
      state: 'running',
      price,
      at,
    });
    return record;
  });
}

async function keepVolume(deps: BookDeps, changes: Partial<VolumeRecord>): Promise<VolumeRecord> {
  const at = deps.clock.now();
  return deps.store.transact(async (tx) => {
    const record = volume({ startedAt: at, createdAt: at, ...changes });
    const price = await priceFor(tx, record.teamId, record.originalRateMicroUsd, at);
    const { rateMicroUsd, discountPercentage } = price;
    const { id: subjectId, teamId } = record;
    await tx.volumes.insert({ ...record, rateMicroUsd, discountPercentage });
    await startBilling(deps, tx, { subjectKind: 'volume', subjectId, teamId, state: 'stored', price, at });
    return record;
  });
}

async function observe({ store, clock }: BookDeps, id: string): Promise<void> {
  const record = await store.read.deployments.byId(id);
  if (record === null) throw new Error(`there is no deployment ${id}`);
  await store.transact((tx) =>
    tx.deployments.recordObservations([{ id, revision: record.revision, at: clock.now() }]),
  );
}
