import { existsSync } from 'node:fs';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Store } from '../marketplace/model/store.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { createSharedClock, systemClock, systemRandom } from '../runtime/system.ts';
import type { MarketplacePostgresOptions } from '../store/marketplace/postgres/store.ts';
import { marketplaceFormat } from '../store/marketplace/sqlite/marketplace-format.ts';
import { openMarketplaceSqliteStore } from '../store/marketplace/sqlite/store.ts';
import { checkDatabase, logCheck } from './open-store.ts';

/** What a command works with beside the server. */
export interface MarketplaceStoreDeps {
  store: Store;
  clock: Clock;
  random: Random;
}

/**
 * The store that `database` names, made where there is none. `beforeWriting` is called when it is found sound or absent; a
 * throw leaves all as it is.
 *
 * @throws {DatabaseRefused}
 */
export async function openMarketplaceStore(
  database: string,
  beforeWriting: () => void,
  { log, ...options }: Pick<MarketplacePostgresOptions, 'hearTime'> & { log?: Log } = {},
): Promise<Store> {
  return isPostgres(database)
    ? openPostgres(database, { beforeWriting, ...options })
    : openMarketplaceSqliteStore(sqlitePath(database), {
        beforeWriting,
        ...(log && { onChecked: logCheck(log) }),
      });
}

/** Opens the database that `berth marketplace` uses, also while it runs, and closes it after `body`. @throws {Fatal} */
export async function withMarketplaceStore<T>(
  database: string,
  body: (deps: MarketplaceStoreDeps) => Promise<T>,
): Promise<T> {
  const shared = isPostgres(database) ? createSharedClock() : undefined;
  const store = await openExisting(database, shared?.hear);
  try {
    return await body({ store, clock: shared ?? systemClock, random: systemRandom });
  } finally {
    await store.close();
  }
}

async function openExisting(
  database: string,
  hearTime: MarketplacePostgresOptions['hearTime'],
): Promise<Store> {
  if (isPostgres(database))
    return openPostgres(database, { mayMigrate: false, ...(hearTime && { hearTime }) });
  const path = sqlitePath(database);
  if (!existsSync(path))
    throw new Fatal(
      `There is no database ${path} yet: start \`berth marketplace\` once, or give --database.`,
    );
  return openMarketplaceSqliteStore(path, { mayMigrate: false, checksAfterCrash: false });
}

/** Looks through all of the file for damage, also while a server uses it; returns its size. @throws {Fatal} */
export function checkMarketplaceDatabase(database: string): number {
  return checkDatabase(database, marketplaceFormat);
}

/** What PostgreSQL needs is loaded where there is one: it is much of all that a start would load. */
async function openPostgres(database: string, options: MarketplacePostgresOptions): Promise<Store> {
  const { openMarketplacePostgresStore } = await import('../store/marketplace/postgres/store.ts');
  return openMarketplacePostgresStore(database, options);
}
