import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { audited } from '../../operator-kit/audit.ts';
import type { Actor } from '../../operator-kit/model.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { Fatal } from '../../ports/errors.ts';
import { backUpDatabase } from '../../store/sqlite/backup.ts';
import { orchestratorFormat } from '../../store/sqlite/orchestrator-format.ts';
import { type Restored, restoreDatabase } from '../../store/sqlite/restore.ts';
import { assertNotServed, takeServeLock } from '../../store/sqlite/serve-lock.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import { type DepsOn, type Stores, withExisting } from './stores.ts';

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

/** Copies the SQLite file, even while a server writes to it. Returns the size of the copy in bytes. @throws {Fatal} */
export async function backUp(database: string, target: string, now: number): Promise<number> {
  if (isPostgres(database))
    throw new Fatal(
      'A PostgreSQL database is backed up with its own tools, `pg_dump` for one: docs/backup.md says what to do after a restore.',
    );
  return (await backUpDatabase(sqlitePath(database), target, now)).bytes;
}

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
