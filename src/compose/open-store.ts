import { existsSync } from 'node:fs';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { createSharedClock, systemClock, systemRandom } from '../runtime/system.ts';
import { toAddress } from '../store/postgres/errors.ts';
import type { PostgresOptions } from '../store/postgres/store.ts';
import { backUpDatabase } from '../store/sqlite/backup.ts';
import { checkDatabaseFile } from '../store/sqlite/check-file.ts';
import type { OpeningCheck } from '../store/sqlite/open-database.ts';
import { orchestratorFormat } from '../store/sqlite/orchestrator-format.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

/**
 * The store that `database` names, made where there is none. `beforeWriting` is called when it is found sound or
 * absent; a throw leaves all as it is.
 *
 * @throws {DatabaseRefused}
 */
export async function openStore(
  database: string,
  beforeWriting: () => void,
  options: Pick<PostgresOptions, 'log' | 'hearTime'> = {},
): Promise<Store> {
  const { log } = options;
  return isPostgres(database)
    ? openPostgres(database, { beforeWriting, ...options })
    : openSqliteStore(sqlitePath(database), { beforeWriting, ...(log && { onChecked: logCheck(log) }) });
}

/** Tells what a start waited for. */
export function logCheck(log: Pick<Log, 'info'>): (check: OpeningCheck) => void {
  return ({ depth, durationMs }) =>
    log.info(
      { durationMs: Math.round(durationMs) },
      depth === 'quick'
        ? 'the database was not closed by its last process: its structure was checked, and is sound'
        : 'the database is not as Berth closed it: all of it was checked, and is sound',
    );
}

/** What a command works with beside the server. */
export interface StoreDeps {
  store: Store;
  clock: Clock;
  random: Random;
}

/** Opens the database that `berth serve` uses, also while it runs, and closes it after `body`. @throws {Fatal} */
export async function withStore<T>(database: string, body: (deps: StoreDeps) => Promise<T>): Promise<T> {
  const shared = isPostgres(database) ? createSharedClock() : undefined;
  const store = await openExisting(database, shared?.hear);
  try {
    return await body({ store, clock: shared ?? systemClock, random: systemRandom });
  } finally {
    await store.close();
  }
}

async function openExisting(database: string, hearTime: PostgresOptions['hearTime']): Promise<Store> {
  if (isPostgres(database))
    return openPostgres(database, { mayMigrate: false, ...(hearTime && { hearTime }) });
  const path = sqlitePath(database);
  if (!existsSync(path))
    throw new Fatal(`There is no database ${path} yet: start \`berth serve\` once, or give --database.`);
  return openSqliteStore(path, { mayMigrate: false, checksAfterCrash: false });
}

/** Looks through all of the file for damage, also while a server uses it; returns its size. @throws {Fatal} */
export function checkDatabase(database: string, format = orchestratorFormat): number {
  if (isPostgres(database))
    throw new Fatal('A PostgreSQL database is checked with its own tools: `pg_amcheck` for one.');
  return checkDatabaseFile(sqlitePath(database), format);
}

/** What PostgreSQL needs is loaded where there is one: it is much of all that a start would load. */
async function openPostgres(database: string, options: PostgresOptions): Promise<Store> {
  const { openPostgresStore } = await import('../store/postgres/store.ts');
  return openPostgresStore(database, options);
}

/** A database as a log may name it: without a password. */
export function describeDatabase(database: string): string {
  return isPostgres(database) ? toAddress(database) : sqlitePath(database);
}

/** Copies the SQLite file that a server may be writing to meanwhile; returns the bytes of the copy. @throws {Fatal} */
export async function backUp(database: string, target: string, now: number): Promise<number> {
  if (isPostgres(database))
    throw new Fatal(
      'A PostgreSQL database is backed up with its own tools, `pg_dump` for one: docs/backup.md says what to do after a restore.',
    );
  return (await backUpDatabase(sqlitePath(database), target, now)).bytes;
}
