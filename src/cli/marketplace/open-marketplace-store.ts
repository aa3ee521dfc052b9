import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { Store } from '../../marketplace/model/store.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { createSharedClock, systemClock, systemRandom } from '../../runtime/system.ts';
import type { MarketplacePostgresOptions } from '../../store/marketplace/postgres/store.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';
import { Fatal } from '../fatal.ts';

export interface MarketplaceStoreFlags {
  config?: string;
  database?: string;
  allowPrivate?: true;
}

export interface MarketplaceStoreDeps {
  store: Store;
  clock: Clock;
  random: Random;
  config: MarketplaceConfig;
}

/** The two options by which a command finds the database. */
export function withMarketplaceDatabase(command: Command): Command {
  return command
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/marketplace.db')
    .option('--config <file>', 'marketplace.yaml');
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
  options: Pick<MarketplacePostgresOptions, 'hearTime'> = {},
): Promise<Store> {
  return isPostgres(database)
    ? openPostgres(database, { beforeWriting, ...options })
    : openMarketplaceSqliteStore(sqlitePath(database), { beforeWriting });
}

/**
 * Opens the database that `berth marketplace` with the same flags uses, also while it runs, and closes it after `body`.
 * The flags may stand before or after the name of the command.
 */
export async function withMarketplaceStore<T>(
  command: Command,
  body: (deps: MarketplaceStoreDeps) => Promise<T>,
): Promise<T> {
  const flags = command.optsWithGlobals<MarketplaceStoreFlags>();
  const config = loadMarketplaceConfig({
    file: flags.config,
    flags: { database: flags.database, allowPrivate: flags.allowPrivate },
    env: process.env,
  });
  const shared = isPostgres(config.database) ? createSharedClock() : undefined;
  const store = await openThere(config.database, shared?.hear);
  try {
    return await body({ store, clock: shared ?? systemClock, random: systemRandom, config });
  } finally {
    await store.close();
  }
}

async function openThere(database: string, hearTime: MarketplacePostgresOptions['hearTime']): Promise<Store> {
  if (isPostgres(database))
    return openPostgres(database, { mayMigrate: false, ...(hearTime && { hearTime }) });
  const path = sqlitePath(database);
  if (!existsSync(path))
    throw new Fatal(
      `There is no database ${path} yet: start \`berth marketplace\` once, or give --database.`,
    );
  return openMarketplaceSqliteStore(path, { mayMigrate: false });
}

/** What PostgreSQL needs is loaded where there is one: it is much of all that a start would load. */
async function openPostgres(database: string, options: MarketplacePostgresOptions): Promise<Store> {
  const { openMarketplacePostgresStore } = await import('../../store/marketplace/postgres/store.ts');
  return openMarketplacePostgresStore(database, options);
}
