import type { Migration } from '../migrations.ts';

export interface WatchOptions {
  /** How often the file is looked at. */
  everyMs?: number;
  /** How long after a write the write-ahead log is truncated. */
  truncateAfterMs?: number;
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
  onChecked?: (durationMs: number) => void;
  /** Other times of the file's watch. */
  watch?: WatchOptions;
  /**
   * Resolves in the next turn of the event loop: transactions until then are committed together. Absent: each is
   * committed at once.
   */
  nextTurn?: () => Promise<void>;
}
