import { realpathSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { SchemaChanged } from '../database-refused.ts';
import { CloseMark, readLastClose } from './close-mark.ts';
import type { DatabaseFormat } from './database-format.ts';
import { fromSqlite, tellsDamage } from './errors.ts';
import { FileWatch } from './file-watch.ts';
import { openDatabase, openReader } from './open-database.ts';
import type { OpenOptions } from './open-options.ts';

/** More than any transaction writes: the largest request body, and the rows committed with it. */
const PROOF_BYTES = 1_572_864;

/** A transaction that has run and waits for the commit. */
interface Waiting {
  committed(): void;
  failed(error: unknown): void;
}

/**
 * One SQLite file, served by one process. Transactions run one after another on one connection; reads outside them use
 * a second connection, which sees only committed data. With `nextTurn`, the transactions of one turn of the event loop
 * share a commit, and none resolves before it. One that fails is rolled back alone.
 */
export class EmbeddedDatabase {
  readonly writer: Database.Database;
  readonly reader: Database.Database;
  readonly #file: FileWatch;
  /** Reads the version of the tables in each transaction. */
  readonly #versionNow: Database.Statement;
  readonly #version: unknown;
  /** Undefined: the file was opened without a check or found damaged, so it is not known to be undamaged. */
  #closeMark: CloseMark | undefined;
  readonly #nextTurn: (() => Promise<void>) | undefined;
  /** Transactions within the open SQLite transaction. Empty: none is open. */
  #waiting: Waiting[] = [];
  #lastTurn: Promise<unknown> = Promise.resolve();

  /** @throws {DatabaseRefused} if the file cannot be used as it is. */
  constructor(path: string, options: OpenOptions, format: DatabaseFormat) {
    const isSound = options.checksAfterCrash !== false || readLastClose(path) !== 'open';
    this.writer = openDatabase(path, options, format);
    this.#closeMark = isSound ? new CloseMark(path) : undefined;
    this.reader = openReader(path);
    // The journal exists from the first read on.
    this.reader.prepare('SELECT count(*) FROM sqlite_schema').get();
    this.#versionNow = this.writer.prepare('SELECT user_version FROM pragma_user_version').pluck();
    this.#version = this.#versionNow.get();
    this.#nextTurn = options.nextTurn;
    const inTurn = (truncate: () => void) => this.#inTurn(async () => truncate(), 'alone');
    this.#file = new FileWatch(realpathSync(path), this.writer, inTurn, options.watch);
    // An earlier process may have been killed before it truncated the journal.
    this.#file.written();
  }

  /**
   * Runs a transaction after the earlier ones have ended. `committed` runs right after the commit, before the next
   * transaction begins.
   */
  transact<T>(body: () => Promise<T>, committed = (): void => undefined): Promise<T> {
    const outcome = Promise.withResolvers<T>();
    this.#inTurn(async () => {
      this.#file.assertInPlace();
      await this.#run(body, outcome, committed);
      if (this.#nextTurn === undefined) this.#commit();
      else if (this.#waiting.length === 1) this.#commitLater(this.#nextTurn);
    }).catch(outcome.reject);
    return outcome.promise;
  }

  /**
   * Tests that the disk has room: allocates new pages, writes them and frees them. Pages in use can be written even on
   * a full disk.
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

  /** Calls `listener` soon after another process has committed. */
  onForeignCommit(listener: () => void): void {
    this.#file.onForeignCommit(listener);
  }

  /** Runs `body` after the earlier ones have ended. `alone` runs it outside any transaction. */
  #inTurn<T>(body: () => Promise<T>, how?: 'alone'): Promise<T> {
    const turn = this.#lastTurn.then(() => {
      if (how === 'alone') this.#commit();
      return body();
    });
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Commits in the next turn. Transactions that begin until then join. */
  #commitLater(nextTurn: () => Promise<void>): void {
    void nextTurn().then(() => this.#inTurn(async () => this.#commit()));
  }

  /** Commits the waiting transactions. Never throws: they get the error. */
  #commit(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    try {
      this.writer.exec('COMMIT');
    } catch (error) {
      this.#failAll(waiting, this.toCoreError(error));
      return;
    }
    this.#file.written();
    for (const { committed, failed } of waiting) tell(committed, failed);
  }

  /** Translates an error as {@link fromSqlite} does, and records damage. */
  readonly toCoreError = (error: unknown): unknown => {
    this.#recordDamage(error);
    return fromSqlite(error);
  };

  /** A file that is found damaged is not marked as clean: the next start checks it. */
  #recordDamage(error: unknown): void {
    if (tellsDamage(error)) this.#closeMark = undefined;
  }

  close(): Promise<void> {
    this.#file.stop();
    return this.#inTurn(async () => {
      this.reader.close();
      this.writer.close();
      this.#closeMark?.closed();
    }, 'alone');
  }

  /** Runs within the open SQLite transaction, or opens one. */
  async #run<T>(
    body: () => Promise<T>,
    outcome: Pick<PromiseWithResolvers<T>, 'resolve' | 'reject'>,
    committed: () => void,
  ): Promise<void> {
    const isFirst = this.#waiting.length === 0;
    try {
      this.writer.exec(isFirst ? 'BEGIN IMMEDIATE' : 'SAVEPOINT joined');
      if (isFirst) this.#assertVersion();
      const result = await body();
      if (!isFirst) this.writer.exec('RELEASE joined');
      const succeed = (): void => {
        committed();
        outcome.resolve(result);
      };
      this.#waiting.push({ committed: succeed, failed: outcome.reject });
    } catch (error) {
      this.#takeBack(this.toCoreError(error), isFirst, outcome.reject);
    }
  }

  /** @throws {SchemaChanged} */
  #assertVersion(): void {
    const version = this.#versionNow.get();
    if (version !== this.#version) throw new SchemaChanged(Number(version), Number(this.#version));
  }

  /** Rolls back a failed transaction. It may have read data that is not durable yet: its error waits for the commit. */
  #takeBack(error: unknown, isFirst: boolean, failed: (error: unknown) => void): void {
    if (!isFirst && this.#undoJoined()) {
      this.#waiting.push({ committed: () => failed(error), failed });
      return;
    }
    failed(error);
    this.#failAll(this.#waiting.splice(0), error);
  }

  /**
   * Returns false if the transaction could not be rolled back alone. After a full disk, for example, SQLite rolls back
   * all uncommitted data.
   */
  #undoJoined(): boolean {
    try {
      this.writer.exec('ROLLBACK TO joined; RELEASE joined');
      return true;
    } catch {
      return false;
    }
  }

  /** Rolls back the whole SQLite transaction, if it is still open. */
  #failAll(waiting: readonly Waiting[], error: unknown): void {
    try {
      if (this.writer.open && this.writer.inTransaction) this.writer.exec('ROLLBACK');
    } catch (secondError) {
      // The next transaction then fails to begin, and its caller gets the error.
      this.#recordDamage(secondError);
    }
    for (const { failed } of waiting) failed(error);
  }
}

/** A listener's error does not affect other transactions. */
function tell(committed: () => void, failed: (error: unknown) => void): void {
  try {
    committed();
  } catch (error) {
    failed(error);
  }
}
