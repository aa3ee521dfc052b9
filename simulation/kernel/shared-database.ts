import type { Scheduler } from '../../test/support/time/scheduler.ts';

/** What a world tells its database when it begins. */
export interface Beginning<Store> {
  scheduler: Scheduler;
  /** Whether several servers share it. */
  isShared: boolean;
  /** Called with each store that is opened on it. */
  opened?: (store: Store) => void;
}

/** The database of one run: a file, or one on a PostgreSQL server. */
export interface SharedDatabase<Store> {
  readonly store: Store;
  begin(beginning: Beginning<Store>): void;
  /** Loses what was not synced. Every process that used the database has been killed before. */
  cutPower(): Promise<void>;
  /** Copies what is committed now, and returns the name of the copy. */
  copy(): Promise<string>;
  /** Goes back to a copy: what was committed since is lost. Every process that used the database has been killed before. */
  goBack(copy: string): Promise<void>;
  close(): Promise<void>;
}

/** The database that all runs of a process start from. */
export interface DatabaseTemplate<Store> {
  /** The folder of the runs. */
  folder: string;
  /** The database of one more run. */
  take(): Promise<SharedDatabase<Store>>;
  close(): Promise<void>;
}
