import type { Migration } from '../migrations.ts';

/**
 * How much of a file is read to find damage. `quick`: SQLite's own structures, without its indexes: about a second for
 * 1,000,000 rows. `full`: also that the indexes hold what the rows say, and the contents of the rows: about ten times that.
 */
export type CheckDepth = 'none' | 'quick' | 'full';

/** A check that was done because the file was not known to be as it was closed. */
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
  /** False: a file that another process has open, or had when it ended, is not checked: that one's next start does it. */
  checksAfterCrash?: boolean;
  /** Called after the check for damage, where there was one. */
  onChecked?: (check: OpeningCheck) => void;
  /** How long after a write the write-ahead log is emptied; default: some seconds. */
  truncateJournalAfterMs?: number;
  /** How often it is asked whether another process has written; default: twice a second. */
  lookForCommitsEveryMs?: number;
  /** Resolves in the next turn of the event loop: what is written until then is committed together. Absent: each at once. */
  nextTurn?: () => Promise<void>;
}
