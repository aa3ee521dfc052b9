import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { emptyDatabaseFile, type MigrationsOf, readMigrations } from '../migrations.ts';
import type { DatabaseFormat } from './database-format.ts';
import type { EmbeddedDatabase } from './embedded.ts';
import { fromSqlite } from './errors.ts';

/** SQLite's path for a database without a file. */
export const MEMORY = ':memory:';

/** The parts of its database that a store uses, on a file or in memory. */
export type StoreDatabase = Pick<
  EmbeddedDatabase,
  'writer' | 'reader' | 'transact' | 'proveWrites' | 'onForeignCommit' | 'toCoreError' | 'close'
>;

/**
 * An in-memory database. Transactions run one after another. There is one connection: a read outside a transaction sees
 * uncommitted writes of a running one.
 */
export class MemoryDatabase implements StoreDatabase {
  readonly writer: Database.Database;
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** `image` is the content of another database. Without it, the database is empty. */
  constructor(format: DatabaseFormat, image: Buffer = emptyDatabase(format)) {
    this.writer = new Database(image);
    this.writer.pragma('foreign_keys = ON');
  }

  get reader(): Database.Database {
    return this.writer;
  }

  transact<T>(body: () => Promise<T>, committed = (): void => undefined): Promise<T> {
    const turn = this.#lastTurn.then(() => this.#run(body, committed));
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** If memory runs out, the process ends. */
  async proveWrites(): Promise<void> {}

  /** No other process can access it. */
  onForeignCommit(): void {}

  /** The committed data, from which a {@link MemoryDatabase} can be created. Undefined: a transaction is running. */
  image(): Buffer | undefined {
    return this.writer.inTransaction ? undefined : this.writer.serialize();
  }

  readonly toCoreError = fromSqlite;

  async close(): Promise<void> {
    await this.#lastTurn;
    this.writer.close();
  }

  async #run<T>(body: () => Promise<T>, committed: () => void): Promise<T> {
    let result: T;
    try {
      this.writer.exec('BEGIN');
      result = await body();
      this.writer.exec('COMMIT');
    } catch (error) {
      if (this.writer.open && this.writer.inTransaction) this.writer.exec('ROLLBACK');
      throw fromSqlite(error);
    }
    committed();
    return result;
  }
}

const emptyDatabases = new Map<DatabaseFormat, Buffer>();

function emptyDatabase(format: DatabaseFormat): Buffer {
  const file = emptyDatabaseFile(format.migrations);
  const empty =
    emptyDatabases.get(format) ??
    (existsSync(file) ? gunzipSync(readFileSync(file)) : migratedDatabase(format.migrations));
  emptyDatabases.set(format, empty);
  return empty;
}

/** The result of the migrations. The build runs them for the package, others once in a process. */
export function migratedDatabase(migrations: MigrationsOf): Buffer {
  const db = new Database(MEMORY);
  for (const { sql } of readMigrations(migrations)) db.exec(sql);
  const made = db.serialize();
  db.close();
  return made;
}
