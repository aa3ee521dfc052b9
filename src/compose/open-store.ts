import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Store } from '../orchestrator/model/store.ts';
import { Fatal } from '../ports/errors.ts';
import { backUpDatabase } from '../store/sqlite/backup.ts';
import { orchestratorFormat } from '../store/sqlite/orchestrator-format.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { type DepsOn, openIn, type StoreOptions, type Stores } from './stores.ts';

export const orchestratorStores: Stores<Store> = {
  format: orchestratorFormat,
  openSqlite: openSqliteStore,
  openPostgres: async (url, options) => {
    const { openPostgresStore } = await import('../store/postgres/store.ts');
    return openPostgresStore(url, options);
  },
};

/**
 * The store that `database` names, made where there is none. `beforeWriting` is called when it is found sound or
 * absent; a throw leaves all as it is.
 *
 * @throws {DatabaseRefused}
 */
export async function openStore(
  database: string,
  beforeWriting: () => void,
  options: Pick<StoreOptions, 'log' | 'hearTime'> = {},
): Promise<Store> {
  return openIn(orchestratorStores, database, { beforeWriting, ...options });
}

/** What a command works with beside the server. */
export type StoreDeps = DepsOn<Store>;

/** Copies the SQLite file that a server may be writing to meanwhile; returns the bytes of the copy. @throws {Fatal} */
export async function backUp(database: string, target: string, now: number): Promise<number> {
  if (isPostgres(database))
    throw new Fatal(
      'A PostgreSQL database is backed up with its own tools, `pg_dump` for one: docs/backup.md says what to do after a restore.',
    );
  return (await backUpDatabase(sqlitePath(database), target, now)).bytes;
}
