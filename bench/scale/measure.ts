/** A measurement with n and with 10 n items, each in its own process. */
export interface Measure {
  id: string;
  what: string;
  /** The kind of the n items. */
  of: string;
  n: { full: number; quick: number };
  on: readonly StoreKind[];
  figures: Readonly<Record<string, Figure>>;
  /** Number of rounds; fewer if one takes long. */
  rounds?: { full: number; quick: number };
  /** Whether both sizes run concurrently; `quick`: beside other rows too, with `--quick`. For subjects that mostly wait. */
  isTogether?: boolean | 'quick';
  /** Loads the module of the subject. */
  load(): Promise<{ open: OpenSubject }>;
}

export type StoreKind = 'sqlite' | 'postgres';

/** A number that each round produces. */
export interface Figure {
  what: string;
  unit: string;
  /** How rounds are combined. A cost uses the least, because noise only raises it. */
  of?: 'least' | 'most' | 'median';
  /** Aim at 10 n of the full measurement. It is printed and does not fail the run: times depend on the machine. */
  aim?: { atMost: number } | { atLeast: number };
  /** Allowed factor from n to 10 n; null: the figure is only reported. */
  mayGrow: number | null;
}

/** Allowed growth of a cost that is independent of n, on a busy machine. */
export const FLAT = 1.8;
/** Allowed growth of a cost that is proportional to n. */
export const LINEAR = 16;

export interface Setting {
  n: number;
  isQuick: boolean;
  /** A folder for its files, which is removed afterwards. */
  folder: string;
  /** Creates a database and returns its value for `--database`. */
  createDatabase(): Promise<string>;
}

/** The measured subject, with n items. */
export interface Subject {
  round(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

export type OpenSubject = (setting: Setting) => Promise<Subject>;
