import { realpathSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { CloseMark, readLastClose } from './close-mark.ts';
import { FileIdentity } from './database-file.ts';
import type { DatabaseFormat } from './database-format.ts';
import { fromSqlite } from './errors.ts';
import { JournalTruncation } from './journal-truncation.ts';
import { type OpenOptions, openDatabase, openReader } from './open-database.ts';

/** More than one create writes. */
const PROOF_BYTES = 65_536;

/**
 * One SQLite file, served by one process. Transactions run one after another on one connection; reads outside of them
 * go through a second connection, which sees only what is committed.
 */
export class EmbeddedDatabase {
  readonly writer: Database.Database;
  readonly reader: Database.Database;
  readonly #file: FileIdentity;
  /** Undefined: the file was opened without a check, and is not known to be free of damage. */
  readonly #closeMark: CloseMark | undefined;
  readonly #journal: JournalTruncation;
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** @throws {DatabaseRefused} if the file cannot be used as it is. */
  constructor(path: string, options: OpenOptions, format: DatabaseFormat) {
    const isSound = options.checksAfterCrash !== false || readLastClose(path) !== 'crashed';
    this.writer = openDatabase(path, options, format);
    this.#closeMark = isSound ? new CloseMark(path) : undefined;
    this.reader = openReader(path);
    // The journal exists from the first read on.
    this.reader.prepare('SELECT count(*) FROM sqlite_schema').get();
    this.#file = new FileIdentity(realpathSync(path));
    this.#journal = new JournalTruncation(
      this.writer,
      (truncate) => this.#inTurn(async () => truncate()),
      options.truncateJournalAfterMs,
    );
    // An earlier process may have been killed before it truncated the journal.
    this.#journal.plan();
  }

  /**
   * Runs one transaction, after those before it have ended. `committed` runs right after the commit, before the next
   * transaction begins.
   */
  transact<T>(body: () => Promise<T>, committed = (): void => undefined): Promise<T> {
    return this.#inTurn(async () => {
      this.#file.assertInPlace();
      const result = await this.#commitOrRollBack(body);
      this.#journal.plan();
      committed();
      return result;
    });
  }

  /** Runs one statement, which is a transaction by itself. */
  write<T>(statement: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      this.#file.assertInPlace();
      this.#journal.plan();
      return guarded(statement());
    });
  }

  /**
   * Proves that the disk has room: allocates new pages, writes them and frees them. Pages that are already in use can be
   * written even on a full disk.
   */
  proveWrites(): Promise<void> {
    return this.transact(async () => {
      this.writer.exec(
        `CREATE TABLE write_proof (filler BLOB);
         INSERT INTO write_proof VALUES (zeroblob(${PROOF_BYTES}));
         DROP TABLE write_proof;`,
      );
    });
  }

  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(body);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  close(): Promise<void> {
    this.#journal.stop();
    return this.#inTurn(async () => {
      this.#journal.stop();
      this.reader.close();
      this.writer.close();
      this.#closeMark?.closed();
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
