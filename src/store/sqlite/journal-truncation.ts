import type Database from 'better-sqlite3';

/** How long after a write the journal is truncated. */
const AFTER_MS = 10_000;

/**
 * Truncates the write-ahead log some seconds after a write. `secure_delete` overwrites deleted data only in the
 * database. The log would keep it, such as the contents of cloud_init, until the process ends.
 */
export class JournalTruncation {
  readonly #db: Database.Database;
  readonly #inTurn: (truncate: () => void) => Promise<void>;
  readonly #afterMs: number;
  #timer: NodeJS.Timeout | undefined;

  /** `inTurn` runs the truncation between two transactions. */
  constructor(
    db: Database.Database,
    inTurn: (truncate: () => void) => Promise<void>,
    afterMs: number = AFTER_MS,
  ) {
    this.#db = db;
    this.#inTurn = inTurn;
    this.#afterMs = afterMs;
  }

  /** Schedules a truncation after a write. */
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

  /** Does not wait. While another connection reads, the truncation is retried later. */
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
