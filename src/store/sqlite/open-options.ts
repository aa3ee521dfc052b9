import type { Migration } from '../migrations.ts';

/**
 * How much of a file is read to detect damage. `quick`: SQLite's own structures, without indexes; about a second for
 * 1,000,000 rows. `full`: also that indexes match the rows, and the contents of the rows; about ten times as long.
 */
export type CheckDepth = 'none' | 'quick' | 'full';

/** A check that ran because the file may have changed since it was closed. */
export interface OpeningCheck {
  depth: CheckDepth;
  durationMs: number;
}

export interface OpenOptions {
  migrations?: readonly Migration[];
  /** Called once the file is checked or found absent, before anything is written. If it throws, nothing is changed. */
  beforeWriting?: () => void;
  /** False: a database of an earlier version is refused, because an earlier program may be serving it. */
  mayMigrate?: boolean;
  /**
   * False: a file that another process has open, or had open when it ended, is not checked. That process's next start
   * checks it.
   */
  checksAfterCrash?: boolean;
  /** Called after the check for damage, if there was one. */
  onChecked?: (check: OpeningCheck) => void;
  /** How long after a write the write-ahead log is truncated; default: some seconds. */
  truncateJournalAfterMs?: number;
  /** Interval between checks for commits of other processes; default: half a second. */
  lookForCommitsEveryMs?: number;
  /**
   * Resolves in the next turn of the event loop: transactions until then are committed together. Absent: each is
   * committed at once.
   */
  nextTurn?: () => Promise<void>;
}
