/** One thing that is measured with n and with 10 n of what grows, each time in a process of its own. */
export interface Measure {
  id: string;
  what: string;
  /** What there are n of. */
  of: string;
  n: { full: number; quick: number };
  on: readonly StoreKind[];
  figures: Readonly<Record<string, Figure>>;
  /** How many of each; fewer where one takes long. */
  rounds?: { full: number; quick: number };
  /** Whether both sizes are measured at once, or on SQLite with `--quick`: what mostly waits leaves the other its time. */
  isTogether?: boolean | 'quick';
  /** Where what is measured stands. */
  load(): Promise<{ open: OpenSubject }>;
}

export type StoreKind = 'sqlite' | 'postgres';

/** One of the numbers that a round comes to. */
export interface Figure {
  what: string;
  unit: string;
  /** Of several rounds: the least for a cost, which noise only raises. */
  of?: 'least' | 'most' | 'median';
  /** At 10 n of the full measure; printed, and judged by nobody: a time depends on the machine. */
  aim?: { atMost: number } | { atLeast: number };
  /** By which factor it may differ from n to 10 n; null: it is told only. */
  mayGrow: number | null;
}

/** A cost that has nothing to do with how much there is, on a machine that has other work. */
export const FLAT = 1.8;
/** The cost of all that there is, ten times as much. */
export const LINEAR = 16;

export interface Setting {
  n: number;
  isQuick: boolean;
  /** For files of its own; removed afterwards. */
  folder: string;
  /** As `--database` names it: a new one. */
  createDatabase(): Promise<string>;
}

/** What is measured, with n of what grows. */
export interface Subject {
  round(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

export type OpenSubject = (setting: Setting) => Promise<Subject>;
