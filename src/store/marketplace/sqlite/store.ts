import Database from 'better-sqlite3';
import { Duplicate, type Store, StoreUnavailable } from '../../../marketplace/model/store.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { sqlite } from '../../schema/sqlite.ts';
import { toConnection } from '../../sqlite/connection.ts';
import { EmbeddedDatabase } from '../../sqlite/embedded.ts';
import { MEMORY, MemoryDatabase, type StoreDatabase } from '../../sqlite/memory.ts';
import { openReader } from '../../sqlite/open-database.ts';
import type { OpenOptions } from '../../sqlite/open-options.ts';
import { readerOn, transactionOn } from '../queries/repositories.ts';
import { noNotifications, RowSignals } from '../row-signals.ts';
import { marketplaceFormat } from './marketplace-format.ts';
import { RequestCounts } from './request-counts.ts';

const tables = marketplaceTables(sqlite);

/**
 * Opens the marketplace's embedded store: see `EmbeddedDatabase`. With the path `:memory:` it has no file, and ends
 * with the process.
 * @throws {DatabaseRefused} if the file cannot be used as it is.
 */
export function openMarketplaceSqliteStore(path: string, options: OpenOptions = {}): Store {
  return path === MEMORY
    ? openMemoryMarketplaceStore()
    : storeOn(new EmbeddedDatabase(path, options, marketplaceFormat), () => openSnapshot(path));
}

/** Opens a store in memory that can be copied. `image` is the content of another one. */
export function openMemoryMarketplaceStore(image?: Buffer): Store & Pick<MemoryDatabase, 'image'> {
  const database = new MemoryDatabase(marketplaceFormat, image);
  const snapshot = () => new Database(database.writer.serialize(), { readonly: true });
  return { ...storeOn(database, snapshot), image: () => database.image() };
}

function storeOn(database: StoreDatabase, openSnapshot: () => Database.Database): Store {
  const connection = toConnection(database.writer, tables);
  const requests = new RequestCounts();
  const signals = new RowSignals();
  const toCoreError = (error: unknown): unknown => asDuplicate(database.toCoreError(error));
  return {
    read: readerOn(toConnection(database.reader, tables), toCoreError),
    transact: (body) => {
      const notifications = noNotifications();
      return database
        .transact(
          () => body(transactionOn(connection, notifications)),
          () => signals.notify(notifications),
        )
        .catch((error) => Promise.reject(toCoreError(error)));
    },
    watch: signals.watch,
    onWake: signals.onWake,
    // Each changed page is written once per transaction.
    confirmationsAtOnce: 5_000,
    snapshot: async (body) => {
      const reader = openSnapshot();
      try {
        return await body(readerOn(toConnection(reader, tables), toCoreError));
      } finally {
        reader.close();
      }
    },
    countRequest: async (window) => requests.count(window),
    uncountRequest: async (window) => requests.uncount(window),
    proveWrites: () => database.proveWrites(),
    close: () => database.close(),
  };
}

/** Opens a connection whose reads all see the same snapshot. */
function openSnapshot(path: string): Database.Database {
  try {
    const reader = openReader(path);
    // An audit reads whole tables through their indexes.
    reader.pragma('cache_size = -65536');
    reader.exec('BEGIN');
    return reader;
  } catch (error) {
    throw new StoreUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

const TAKEN = ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'];

function asDuplicate(known: unknown): unknown {
  if (!(known instanceof Database.SqliteError) || !TAKEN.includes(known.code)) return known;
  return new Duplicate(known.message, { cause: known });
}
