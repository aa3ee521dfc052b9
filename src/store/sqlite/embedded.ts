import { realpathSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { FileFormat } from './file-format.ts';
import { FileIdentity } from './file-identity.ts';
import { type OpenOptions, openDatabase, openReader } from './open-database.ts';
import { fromSqlite } from './sqlite-error.ts';

/**
 * One SQLite file, served by one process. Transactions run one after another on one connection; reads outside of them
 * go through a second connection, which sees only what is committed.
 */
export class EmbeddedDatabase {
  readonly writer: Database.Database;
  readonly reader: Database.Database;
  readonly #file: FileIdentity;
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** @throws {DatabaseRefused} if the file cannot be used as it is. */
  constructor(path: string, options: OpenOptions, format: FileFormat) {
    this.writer = openDatabase(path, options, format);
    this.reader = openReader(path);
    // The journal is there from the first read on.
    this.reader.prepare('SELECT count(*) FROM sqlite_schema').get();
    this.#file = new FileIdentity(realpathSync(path));
  }

  /**
   * All or nothing; waits for the transactions before it, so that none runs inside another's. `committed` runs right
   * after the commit, before the next one begins.
   */
  transact<T>(body: () => Promise<T>, committed = (): void => undefined): Promise<T> {
    return this.#inTurn(async () => {
      this.#file.assertInPlace();
      const result = await this.#commitOrRollBack(body);
      committed();
      return result;
    });
  }

  /** One statement, which is a transaction by itself. */
  write<T>(statement: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      this.#file.assertInPlace();
      return guarded(statement());
    });
  }

  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(body);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      this.reader.close();
      this.writer.close();
    });
  }

  async #commitOrRollBack<T>(body: () => Promise<T>): Promise<T> {
    try {
      this.writer.exec('BEGIN IMMEDIATE');
      const result = await body();
      this.writer.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.writer.open && this.writer.inTransaction) this.writer.exec('ROLLBACK');
      throw fromSqlite(error);
    }
  }
}

export async function guarded<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) => Promise.reject(fromSqlite(error)));
}
