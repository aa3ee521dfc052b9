import { AsyncLocalStorage } from 'node:async_hooks';
import type { Layer } from '../provider.ts';
import { type JournalEntry, KeptHeaders } from './entry.ts';
import { isMatch, type JournalFilter } from './filter.ts';
import { Reading, Recording } from './recording.ts';

/** Maximum number of entries. Older ones are dropped. */
const MAX_ENTRIES = 10_000;
const MAX_BODY_BYTES = 64 * 1024;

interface JournalOptions {
  maxBodyBytes?: number;
  headers?: KeptHeaders;
}

export interface SavedJournal {
  count: number;
  dropped: number;
  entries: readonly Recording[];
}

/** Every exchange with the servers of a sandbox, in the order of the requests. */
export class Journal {
  readonly #now: () => number;
  readonly #entries: Recording[] = [];
  /** The exchange of the current call, for the inner layers. */
  readonly #current = new AsyncLocalStorage<Recording>();
  readonly #reading: Reading;
  #count = 0;
  /** Entries that have been removed from `#entries` to limit their number. */
  #dropped = 0;

  constructor(
    now: () => number,
    { maxBodyBytes = MAX_BODY_BYTES, headers = new KeptHeaders() }: JournalOptions = {},
  ) {
    this.#now = now;
    this.#reading = new Reading(maxBodyBytes, headers);
  }

  /** The layer outside all faults. It records the answer that the caller gets. */
  readonly layer: Layer = async (exchange, next) => {
    const { request } = exchange;
    const now = this.#now;
    const recording = new Recording(++this.#count, now(), exchange, this.#reading);
    this.#entries.push(recording);
    if (this.#entries.length > 2 * MAX_ENTRIES) this.#dropped += this.#entries.splice(0, MAX_ENTRIES).length;
    try {
      const response = await this.#current.run(recording, () => next(request));
      recording.answered(response, now(), this.#reading);
      return response;
    } catch (error) {
      recording.broke(error, now());
      throw error;
    }
  };

  /** The layer inside all faults. It records the server's answer. */
  readonly serverLayer: Layer = async (exchange, next) => {
    const response = await next(exchange.request);
    this.#current.getStore()?.served(response, this.#reading);
    return response;
  };

  /** Records that the current exchange triggered a fault. */
  noteFault(fault: string): void {
    this.#current.getStore()?.triggered(fault);
  }

  /** Returns the matching entries, oldest first. If there are more than `limit`, it returns the last ones. */
  async entries(filter: JournalFilter = {}): Promise<JournalEntry[]> {
    await this.#reading.settled();
    const fitting = this.#kept()
      .map((recording) => recording.toEntry())
      .filter((entry) => isMatch(entry, filter));
    return filter.limit === undefined ? fitting : fitting.slice(-filter.limit);
  }

  /** Number of exchanges, including dropped ones. */
  get count(): number {
    return this.#count;
  }

  /** Number of the oldest exchanges, whose entries were dropped. */
  get dropped(): number {
    return this.#dropped + Math.max(0, this.#entries.length - MAX_ENTRIES);
  }

  /** Clears all entries and their count. */
  clear(): void {
    this.load({ count: 0, dropped: 0, entries: [] });
  }

  save(): SavedJournal {
    return { count: this.#count, dropped: this.dropped, entries: this.#kept() };
  }

  load({ count, dropped, entries }: SavedJournal): void {
    this.#count = count;
    this.#dropped = dropped;
    this.#entries.splice(0, this.#entries.length, ...entries);
  }

  #kept(): Recording[] {
    return this.#entries.slice(-MAX_ENTRIES);
  }
}
