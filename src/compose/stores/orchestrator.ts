import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isPostgres, sqlitePath, toDatabase } from '../../config/server-schema.ts';
import { audited } from '../../operator-kit/audit.ts';
import type { Actor } from '../../operator-kit/model.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { Fatal } from '../../ports/errors.ts';
import { orchestratorFormat } from '../../store/sqlite/orchestrator-format.ts';
import { type Restored, restoreDatabase } from '../../store/sqlite/restore.ts';
import { assertNotServed, takeServeLock } from '../../store/sqlite/serve-lock.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import { type DepsOn, openIn, type Stores, withExisting } from './stores.ts';

export const orchestratorStores: Stores<Store> = {
  format: orchestratorFormat,
  openSqlite: openSqliteStore,
  openPostgres: async (url, options) => {
    const { openPostgresStore } = await import('../../store/postgres/store.ts');
    return openPostgresStore(url, options);
  },
};

/** The dependencies of a command that runs beside the server. */
export type StoreDeps = DepsOn<Store>;

/** Replaces the database by a copy of a backup. The old one is kept under another name. @throws {Fatal} */
export function restore(
  database: string,
  backup: string,
  { now, actor }: { now: number; actor: Actor },
): Restored {
  if (isPostgres(database))
    throw new Fatal(
      'A PostgreSQL database is restored with its own tools, `pg_restore` for one. Then run `berth restore --in-place`, before the first start.',
    );
  const path = sqlitePath(database);
  assertNotServed(path);
  const release = takeServeLock(path);
  try {
    const stamp = new Date(now).toISOString().replaceAll(/[:.]/g, '-');
    return restoreDatabase(backup, path, stamp, { at: now, actor: actor.name });
  } finally {
    release();
  }
}

/** What a backup has, as a start from it finds it. */
export interface Rehearsal {
  /** In milliseconds since the epoch. */
  takenAt: number;
  /** By status. */
  instances: Record<string, number>;
  accounts: number;
  /** The keys that are valid in the backup, and revoked in the database. */
  revokedSince: string[];
}

/**
 * Restores a backup beside the database, opens the result as a start does, and removes it. Nothing else changes.
 * @throws {Fatal}
 */
export async function rehearseRestore(
  database: string,
  backup: string,
  by: { now: number; actor: Actor },
): Promise<Rehearsal> {
  if (isPostgres(database))
    throw new Fatal('A PostgreSQL backup is rehearsed with its own tools, in another database.');
  const path = sqlitePath(database);
  mkdirSync(dirname(path), { recursive: true });
  const scratch = mkdtempSync(`${path}.rehearsal-`);
  try {
    const copy = toDatabase(join(scratch, 'berth.db'));
    const { takenAt } = restore(copy, backup, by);
    const store = await openIn(orchestratorStores, copy, {});
    try {
      const [statuses, accounts, keys] = await Promise.all([
        store.read.instances.countByStatus(),
        store.read.credentials.listAccounts(),
        store.read.credentials.listKeys(),
      ]);
      const revoked = existsSync(path) ? await revokedKeys(database) : new Set<string>();
      return {
        takenAt,
        instances: Object.fromEntries(statuses.map(({ status, count }) => [status, count])),
        accounts: accounts.length,
        revokedSince: keys.flatMap(({ id, revokedAt }) =>
          revokedAt === null && revoked.has(id) ? [id] : [],
        ),
      };
    } finally {
      await store.close();
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

function revokedKeys(database: string): Promise<Set<string>> {
  return withExisting(orchestratorStores, database, async ({ store: { read } }) => {
    const keys = await read.credentials.listKeys();
    return new Set(keys.flatMap(({ id, revokedAt }) => (revokedAt === null ? [] : [id])));
  });
}

/** Marks a database that other tools restored: the first start then compares it with the platform. @throws {Fatal} */
export async function markRestored(database: string, takenAt: number, actor: Actor): Promise<void> {
  const release = isPostgres(database) ? () => undefined : takeServeLock(sqlitePath(database));
  try {
    const detail = { in_place: true, taken_at: new Date(takenAt).toISOString() };
    await withExisting(orchestratorStores, database, ({ store, clock }) =>
      audited({ store, clock }, actor, { action: 'database.restore', detail }, (inside) =>
        inside.transact((tx) => tx.marks.put('restored_from', takenAt)),
      ),
    );
  } finally {
    release();
  }
}
