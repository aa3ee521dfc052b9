import Database from 'better-sqlite3';
import { readMigrations } from '../migrations.ts';
import type { DatabaseFormat } from './database-format.ts';
import type { EmbeddedDatabase } from './embedded.ts';
import { fromSqlite } from './errors.ts';

/** The path of a database that has no file, as SQLite names it. */
export const MEMORY = ':memory:';

/** What a store needs of its database, on a file or in memory. */
export type StoreDatabase = Pick<
  EmbeddedDatabase,
  | 'writer'
  | 'reader'
  | 'transact'
  | 'readCommitted'
  | 'proveWrites'
  | 'onForeignCommit'
  | 'toCoreError'
  | 'close'
>;

/**
 * A database that ends with its process. Transactions run one after another. There is one connection: a read outside of
 * a transaction sees what a running one has written so far.
 */
export class MemoryDatabase implements StoreDatabase {
  readonly writer: Database.Database;
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** `image`: what another one contained; absent: it is empty. */
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

  /** Waits for the transactions before. */
  readCommitted<T>(read: () => Promise<T>): Promise<T> {
    return this.transact(read);
  }

  /** Memory has room, or the process ends. */
  async proveWrites(): Promise<void> {}

  /** No other process reaches it. */
  onForeignCommit(): void {}

  /** All that is committed, as a database that a {@link MemoryDatabase} can be made of; undefined: a transaction runs. */
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

/** As the migrations leave it, which run once in a process. */
function emptyDatabase(format: DatabaseFormat): Buffer {
  const known = emptyDatabases.get(format);
  if (known !== undefined) return known;
  const db = new Database(MEMORY);
  for (const { sql } of readMigrations(format.migrations)) db.exec(sql);
  const made = db.serialize();
  db.close();
  emptyDatabases.set(format, made);
  return made;
}
