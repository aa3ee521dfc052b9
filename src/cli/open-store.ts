import { existsSync } from 'node:fs';
import { loadConfig } from '../config/load.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { createSharedClock, systemClock, systemRandom } from '../runtime/system.ts';
import { toAddress } from '../store/postgres/address.ts';
import type { PostgresOptions } from '../store/postgres/store.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { Fatal } from './fatal.ts';

export interface StoreFlags {
  config?: string;
  database?: string;
}

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
  return isPostgres(database)
    ? openPostgres(database, { beforeWriting, ...options })
    : openSqliteStore(sqlitePath(database), { beforeWriting });
}

/** Opens the database that `berth serve` with the same flags uses, also while it runs, and closes it after `body`. */
export async function withStore<T>(
  flags: StoreFlags,
  body: (deps: { store: Store; clock: Clock; random: Random }) => Promise<T>,
): Promise<T> {
  const { config } = loadConfig({
    file: flags.config,
    flags: { database: flags.database },
    env: process.env,
  });
  const shared = isPostgres(config.database) ? createSharedClock() : undefined;
  const store = await openThere(config.database, shared?.hear);
  try {
    return await body({ store, clock: shared ?? systemClock, random: systemRandom });
  } finally {
    await store.close();
  }
}

async function openThere(database: string, hearTime: PostgresOptions['hearTime']): Promise<Store> {
  if (isPostgres(database))
    return openPostgres(database, { mayMigrate: false, ...(hearTime && { hearTime }) });
  const path = sqlitePath(database);
  if (!existsSync(path))
    throw new Fatal(`There is no database ${path} yet: start \`berth serve\` once, or give --database.`);
  return openSqliteStore(path, { mayMigrate: false });
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
