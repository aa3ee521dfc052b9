import { statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { WatchOptions } from './open-options.ts';

/**
 * Looks at an open file twice a second:
 * - Is it still at its path? SQLite continues to write into a file or a journal that was moved or deleted, and all of
 *   that would be lost when the process ends.
 * - Has another process committed, such as an operator's command? `data_version` changes only with commits of other
 *   connections, and this process's other connection only reads.
 * - Is the write-ahead log to be truncated? `secure_delete` overwrites deleted data only in the database. The log would
 *   keep it, such as the contents of cloud_init, until the process ends.
 */
export class FileWatch {
  readonly #writer: Database.Database;
  readonly #inTurn: (truncate: () => void) => Promise<void>;
  readonly #truncateAfterMs: number;
  readonly #inodes: ReadonlyMap<string, bigint | undefined>;
  readonly #version: Database.Statement;
  readonly #listeners = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #knownVersion: unknown;
  #missing: string | undefined;
  #truncateAt: number | undefined;

  /**
   * `path` must have been read once, so that its journal exists. `inTurn` runs the truncation between two transactions.
   */
  constructor(
    path: string,
    writer: Database.Database,
    inTurn: (truncate: () => void) => Promise<void>,
    { everyMs = 500, truncateAfterMs = 10_000 }: WatchOptions = {},
  ) {
    this.#writer = writer;
    this.#inTurn = inTurn;
    this.#truncateAfterMs = truncateAfterMs;
    this.#inodes = new Map([path, `${path}-wal`].map((file) => [file, inodeOf(file)]));
    this.#version = writer.prepare('PRAGMA data_version').pluck();
    this.#knownVersion = this.#version.get();
    this.#timer = setInterval(() => this.#look(), everyMs).unref();
  }

  /** Calls `listener` soon after another process has committed. */
  onForeignCommit(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** @throws {StoreUnavailable} while a file is not at its path. */
  assertInPlace(): void {
    if (this.#missing !== undefined)
      throw new StoreUnavailable(
        `the file ${this.#missing} was moved, deleted or replaced while it is in use: move it back, or stop the server, which saves what it has`,
      );
  }

  /** Schedules a truncation after a write. */
  written(): void {
    this.#truncateAt ??= performance.now() + this.#truncateAfterMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.#missing = [...this.#inodes].find(([file, inode]) => inodeOf(file) !== inode)?.[0];
    this.#hearCommits();
    if (this.#truncateAt === undefined || performance.now() < this.#truncateAt) return;
    this.#truncateAt = undefined;
    void this.#inTurn(() => this.#truncate()).catch(() => this.written());
  }

  #hearCommits(): void {
    let version: unknown;
    try {
      version = this.#version.get();
    } catch {
      // The callers that need the file report that it does not answer.
      return;
    }
    if (version === this.#knownVersion) return;
    this.#knownVersion = version;
    for (const listener of this.#listeners) listener();
  }

  /** Does not wait. While another connection reads, the truncation is retried later. */
  #truncate(): void {
    if (!this.#writer.open) return;
    const timeout = Number(this.#writer.pragma('busy_timeout', { simple: true }));
    this.#writer.pragma('busy_timeout = 0');
    try {
      const isBusy = this.#writer.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 0;
      if (isBusy) this.written();
    } finally {
      this.#writer.pragma(`busy_timeout = ${timeout}`);
    }
  }
}

/** Undefined if the file is not there, or its path cannot be read. */
function inodeOf(file: string): bigint | undefined {
  try {
    return statSync(file, { bigint: true }).ino;
  } catch {
    return undefined;
  }
}
