import type Database from 'better-sqlite3';

/** How long after a write the journal is emptied. */
const AFTER_MS = 10_000;

/**
 * Empties the write-ahead log some seconds after a write. `secure_delete` overwrites what is deleted in the database, and
 * the log still has the pages as they were: what cloud_init held would stay in it until the process ends.
 */
export class JournalTruncation {
  readonly #db: Database.Database;
  readonly #inTurn: (truncate: () => void) => Promise<void>;
  readonly #afterMs: number;
  #timer: NodeJS.Timeout | undefined;

  /** `inTurn` runs it between two transactions. */
  constructor(
    db: Database.Database,
    inTurn: (truncate: () => void) => Promise<void>,
    afterMs: number = AFTER_MS,
  ) {
    this.#db = db;
    this.#inTurn = inTurn;
    this.#afterMs = afterMs;
  }

  /** Something was written. */
  plan(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#inTurn(() => this.#truncate()).catch(() => this.plan());
    }, this.#afterMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Waits for nobody: while another connection reads, it is tried again later. */
  #truncate(): void {
    if (!this.#db.open) return;
    const timeout = Number(this.#db.pragma('busy_timeout', { simple: true }));
    this.#db.pragma('busy_timeout = 0');
    try {
      const isBusy = this.#db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) !== 0;
      if (isBusy) this.plan();
    } finally {
      this.#db.pragma(`busy_timeout = ${timeout}`);
    }
  }
}
