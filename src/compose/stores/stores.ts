import { existsSync } from 'node:fs';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { type Clock, nextTurn, type Random } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { createSharedClock, systemClock, systemRandom } from '../../runtime/system.ts';
import type { Migration } from '../../store/migrations.ts';
import type { PostgresOptions } from '../../store/postgres/open-database.ts';
import { backUpDatabase } from '../../store/sqlite/backup.ts';
import { checkDatabaseFile } from '../../store/sqlite/copy-database.ts';
import type { DatabaseFormat } from '../../store/sqlite/database-format.ts';
import type { OpenOptions } from '../../store/sqlite/open-options.ts';

type OnPostgres = Pick<PostgresOptions, 'migrations' | 'beforeWriting' | 'mayMigrate' | 'log' | 'hearTime'>;
export type StoreOptions = OnPostgres & Pick<OpenOptions, 'checksAfterCrash'>;

/** How to open a product's stores. PostgreSQL's large modules are loaded only if it is used. */
export interface Stores<Store> {
  format: DatabaseFormat;
  /** Other migrations than this program's, for tests of an upgrade. */
  migrations?: readonly Migration[];
  openSqlite(path: string, options: OpenOptions): Store;
  openPostgres(url: string, options: OnPostgres): Promise<Store>;
}

/** Opens the store that `database` names. @throws {DatabaseRefused} */
export async function openIn<Store>(
  stores: Stores<Store>,
  database: string,
  { log, ...options }: StoreOptions,
): Promise<Store> {
  return isPostgres(database)
    ? stores.openPostgres(database, { ...options, ...(log && { log }) })
    : stores.openSqlite(sqlitePath(database), {
        ...options,
        nextTurn,
        // The check has delayed the start.
        onChecked: (durationMs) =>
          log?.info(
            { durationMs: Math.round(durationMs) },
            'the database is a backup, was not closed by its last process, or is open in another: all of it was checked and is intact',
          ),
      });
}

/** The dependencies of a command that runs beside the server. */
export interface DepsOn<Store> {
  store: Store;
  clock: Clock;
  random: Random;
}

/** Opens the server's database, even while the server runs, and closes it after `body`. @throws {Fatal} */
export async function withExisting<Store extends { close(): Promise<void> }, T>(
  stores: Stores<Store>,
  database: string,
  body: (deps: DepsOn<Store>) => Promise<T>,
): Promise<T> {
  if (!isPostgres(database) && !existsSync(sqlitePath(database)))
    throw new Fatal(
      `There is no database ${sqlitePath(database)} yet: start \`${stores.format.command}\` once, or give --database.`,
    );
  const shared = isPostgres(database) ? createSharedClock() : undefined;
  const store = await openIn(stores, database, {
    mayMigrate: false,
    checksAfterCrash: false,
    ...(shared && { hearTime: shared.hear }),
  });
  try {
    return await body({ store, clock: shared ?? systemClock, random: systemRandom });
  } finally {
    await store.close();
  }
}

/** Copies the SQLite file, even while a server writes to it. Returns the size of the copy in bytes. @throws {Fatal} */
export async function backUp(
  { format }: Pick<Stores<unknown>, 'format'>,
  database: string,
  target: string,
  now: number,
): Promise<number> {
  if (isPostgres(database))
    throw new Fatal(
      'A PostgreSQL database is backed up with its own tools, `pg_dump` for one: docs/backup.md says what to do after a restore.',
    );
  return (await backUpDatabase(sqlitePath(database), target, now, format)).bytes;
}

/** Checks the whole file for damage, even while a server uses it. Returns its size. @throws {Fatal} */
export function checkDatabase({ format }: Pick<Stores<unknown>, 'format'>, database: string): number {
  if (isPostgres(database))
    throw new Fatal('A PostgreSQL database is checked with its own tools: `pg_amcheck` for one.');
  return checkDatabaseFile(sqlitePath(database), format);
}
