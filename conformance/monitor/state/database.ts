/** A value in a row. Times are milliseconds since the epoch. */
export type Value = string | number | null;

export type Row = Readonly<Record<string, Value>>;

/** A database that understands the statements of `State`: SQLite or PostgreSQL. */
export interface Database {
  /** Runs one statement, whose parameters are `$1`, `$2` …, and returns its rows. It is stored once this resolves. */
  query(sql: string, parameters?: readonly Value[]): Promise<Row[]>;
  /** Appended to a SELECT inside a write: no other writer changes the selected row before the write is stored. */
  readonly lock: '' | ' FOR SHARE';
  close(): Promise<void>;
}

/** The state cannot be opened. The message says why, and what to do. */
export class StateError extends Error {
  override readonly name = 'StateError';
}
