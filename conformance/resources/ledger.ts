import { createHash } from 'node:crypto';
import type { SignIn } from '../http/sign-in.ts';
import type { ResourceRecord } from '../transcript/records.ts';
import type { ProcessIdentity } from './process-identity.ts';

export type ResourceType = 'instance' | 'volume';

/**
 * What is known of something that the run asked for. `intended`: about to be asked for. `made`: it has an id.
 * `refused`: the target said no. `unknown`: the answer did not tell, and it may exist. `gone`: confirmed by a read.
 */
export type EntryState = 'intended' | 'made' | 'refused' | 'unknown' | 'gone';

export interface Entry {
  n: number;
  type: ResourceType;
  /** Unique to the run and the entry: nothing else on the target begins with it. */
  name: string;
  step: string;
  state: EntryState;
  id?: string;
  region?: string;
  pricePerHour?: number;
  /** Milliseconds since the epoch. */
  intendedAt: number;
  goneAt?: number;
  note?: string;
}

/** A line of the ledger's file. */
export type LedgerLine =
  | {
      line: 'run';
      runId: string;
      baseUrl: string;
      startedAt: string;
      /** Of the key or the user name that it signs in with. */
      keyPrint?: string;
      process?: ProcessIdentity;
    }
  | { line: 'entry'; entry: Entry }
  | { line: 'closed' };

/** Where the ledger is kept. `append` returns when the line is safe on the disk. */
export interface LedgerFile {
  append(line: LedgerLine): void;
}

export interface LedgerParts {
  file: LedgerFile;
  runId: string;
  wall: () => number;
  /** Told of every change of an entry. */
  onChange?: (entry: Entry) => void;
}

/**
 * The record of everything that the run made or may have made. An entry is on the disk before the target is asked, so
 * that no crash leaves a machine that nobody knows of.
 */
export class Ledger {
  readonly entries: Entry[] = [];
  readonly #parts: LedgerParts;

  constructor(parts: LedgerParts, entries: readonly Entry[] = []) {
    this.#parts = parts;
    this.entries.push(...entries);
  }

  /** The name that the next entry will have. */
  nextName(): string {
    return nameOf(this.#parts.runId, this.#nextNumber());
  }

  intend(
    entry: Pick<Entry, 'type' | 'step'> & Partial<Pick<Entry, 'region' | 'pricePerHour' | 'name'>>,
  ): Entry {
    const full: Entry = {
      name: this.nextName(),
      ...entry,
      n: this.#nextNumber(),
      state: 'intended',
      intendedAt: this.#parts.wall(),
    };
    this.entries.push(full);
    this.#write(full);
    return full;
  }

  /** Never one that was used: a line of a stored ledger may be lost. */
  #nextNumber(): number {
    return Math.max(0, ...this.entries.map(({ n }) => n)) + 1;
  }

  made(entry: Entry, id: string): void {
    entry.id = id;
    this.#set(entry, 'made');
  }

  refused(entry: Entry): void {
    this.#set(entry, 'refused');
  }

  unknown(entry: Entry, note: string): void {
    entry.note = note;
    this.#set(entry, 'unknown');
  }

  gone(entry: Entry): void {
    if (entry.state === 'gone') return;
    entry.goneAt = this.#parts.wall();
    this.#set(entry, 'gone');
  }

  /** Says why an entry is still open. */
  note(entry: Entry, note: string): void {
    entry.note = note;
    this.#write(entry);
  }

  /** What exists or may exist, the last made first. */
  get open(): Entry[] {
    return this.entries.filter(isOpen).toReversed();
  }

  /** Nothing is left to do. Only once nothing is open. */
  close(): void {
    if (this.open.length > 0) throw new Error('a ledger with open entries cannot be closed');
    this.#parts.file.append({ line: 'closed' });
  }

  #set(entry: Entry, state: EntryState): void {
    entry.state = state;
    this.#write(entry);
  }

  #write(entry: Entry): void {
    this.#parts.file.append({ line: 'entry', entry: { ...entry } });
    this.#parts.onChange?.(entry);
  }
}

/** Whether something of this entry exists or may exist. */
export function isOpen({ state }: Entry): boolean {
  return state === 'intended' || state === 'made' || state === 'unknown';
}

/** What every name of a run begins with. */
export function prefixOf(runId: string): string {
  return `berth-conf-${runId}-`;
}

function nameOf(runId: string, n: number): string {
  return `${prefixOf(runId)}${String(n).padStart(3, '0')}`;
}

/** What the transcript says of an entry. */
export function toRecord(entry: Entry, at: number): ResourceRecord {
  return {
    kind: 'resource',
    entry: entry.n,
    type: entry.type,
    name: entry.name,
    step: entry.step,
    state: entry.state === 'intended' ? 'unknown' : entry.state,
    at,
    ...(entry.id === undefined ? {} : { id: entry.id }),
    ...(entry.pricePerHour === undefined ? {} : { pricePerHour: entry.pricePerHour }),
    ...(entry.note === undefined ? {} : { note: entry.note }),
  };
}

/**
 * By what a sweep sees that it signs in as the run did: to another account, what the run made is not there. It tells
 * nothing of the key, and that of each run is another one.
 */
export function keyFingerprintOf(runId: string, { apiKey, login }: SignIn): string {
  const credential = apiKey ?? login?.username ?? '';
  return createHash('sha256').update(`${runId}${credential}`).digest('hex').slice(0, 16);
}
