import { createHash } from 'node:crypto';
import { type Names, type PlainSource, suiteNames } from '../http/identity.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { ResourceRecord } from '../transcript/records.ts';
import type { ProcessIdentity } from './process-identity.ts';

export type ResourceType = 'instance' | 'volume';

/**
 * The knowledge about a requested resource. `intended`: the request is about to be sent. `made`: it has an id.
 * `refused`: the target refused it. `unknown`: the answer was unclear, and it may exist. `gone`: a read confirmed that
 * it is gone.
 */
export type EntryState = 'intended' | 'made' | 'refused' | 'unknown' | 'gone';

export interface Entry {
  n: number;
  type: ResourceType;
  /** Unique to the run and the entry. Up to 999 entries, no other name of the run begins with it. */
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
  /** An unclear create was answered, so it is not still under way. */
  isAnswered?: true;
}

/** A line of the ledger's file. */
export type LedgerLine =
  | {
      line: 'run';
      runId: string;
      baseUrl: string;
      startedAt: string;
      /** Fingerprint of the API key or user name of the run. */
      keyPrint?: string;
      /** Set for a plain run: from what its names are drawn. */
      plain?: PlainSource;
      process?: ProcessIdentity;
    }
  | { line: 'entry'; entry: Entry }
  | { line: 'closed' };

/** The file of the ledger. `append` returns once the line is safely on disk. */
export interface LedgerFile {
  append(line: LedgerLine): void;
}

export interface LedgerParts {
  file: LedgerFile;
  runId: string;
  /** Default: those of a usual run. */
  names?: Names;
  wall: () => number;
  /** Called on every change of an entry. */
  onChange?: (entry: Entry) => void;
}

/**
 * The record of everything that the run created or may have created. An entry is on disk before the request is sent,
 * so that no crash leaves an unknown machine behind.
 */
export class Ledger {
  readonly entries: Entry[] = [];
  readonly #parts: LedgerParts;
  readonly #names: Names;

  constructor(parts: LedgerParts, entries: readonly Entry[] = []) {
    this.#parts = parts;
    this.#names = parts.names ?? suiteNames(parts.runId);
    this.entries.push(...entries);
  }

  get names(): Names {
    return this.#names;
  }

  /** The name that the next entry will have. */
  nextName(): string {
    return this.names.nameOf(this.#nextNumber());
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

  /** Never reuses a number, even if a line of the stored ledger was lost. */
  #nextNumber(): number {
    return Math.max(0, ...this.entries.map(({ n }) => n)) + 1;
  }

  /** `pricePerHour` is the price in the answer. The offer's price counts if it is higher. */
  made(entry: Entry, id: string, pricePerHour?: number): void {
    entry.id = id;
    if (pricePerHour !== undefined) entry.pricePerHour = Math.max(entry.pricePerHour ?? 0, pricePerHour);
    this.#set(entry, 'made');
  }

  refused(entry: Entry): void {
    this.#set(entry, 'refused');
  }

  unknown(entry: Entry, note: string, isAnswered = false): void {
    entry.note = note;
    if (isAnswered) entry.isAnswered = true;
    this.#set(entry, 'unknown');
  }

  gone(entry: Entry): void {
    if (entry.state === 'gone') return;
    entry.goneAt = this.#parts.wall();
    this.#set(entry, 'gone');
  }

  /** Opens an entry again that was read as gone. */
  reopen(entry: Entry, note: string): void {
    entry.note = note;
    delete entry.goneAt;
    this.#set(entry, 'made');
  }

  /** Records why an entry is still open. */
  note(entry: Entry, note: string): void {
    entry.note = note;
    this.#write(entry);
  }

  /** The entries that exist or may exist, newest first. */
  get open(): Entry[] {
    return this.entries.filter(isOpen).toReversed();
  }

  /** Marks the clean-up as complete. Throws if an entry is still open. */
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

/** Whether the resource of this entry exists or may exist. */
export function isOpen({ state }: Entry): boolean {
  return state === 'intended' || state === 'made' || state === 'unknown';
}

/** An entry as a transcript record. */
export function toRecord(entry: Entry, at: number): ResourceRecord {
  return {
    kind: 'resource',
    entry: entry.n,
    type: entry.type,
    name: entry.name,
    step: entry.step,
    state: entry.state === 'intended' ? 'unknown' : entry.state,
    at,
    ...(entry.id !== undefined && { id: entry.id }),
    ...(entry.pricePerHour !== undefined && { pricePerHour: entry.pricePerHour }),
    ...(entry.note !== undefined && { note: entry.note }),
  };
}

/**
 * A sweep compares this fingerprint to verify that it uses the account of the run: another account would see none of
 * the run's resources. It reveals nothing about the key and is different for each run.
 */
export function keyFingerprintOf(runId: string, { apiKey, login }: SignIn): string {
  const credential = apiKey ?? login?.username ?? '';
  return createHash('sha256').update(`${runId}${credential}`).digest('hex').slice(0, 16);
}
