import { AsyncLocalStorage } from 'node:async_hooks';
import type { Layer } from '../provider.ts';
import type { JournalEntry } from './entry.ts';
import { isMatch, type JournalFilter } from './filter.ts';
import { Reading, Recording } from './recording.ts';

/** Maximum number of entries. Older ones are dropped. */
const MAX_ENTRIES = 10_000;
const MAX_BODY_BYTES = 64 * 1024;

export interface SavedJournal {
  count: number;
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

  constructor(now: () => number, maxBodyBytes = MAX_BODY_BYTES) {
    this.#now = now;
    this.#reading = new Reading(maxBodyBytes);
  }

  /** The layer outside all faults. It records the answer that the caller gets. */
  readonly layer: Layer = async (exchange, next) => {
    const { provider, request, account } = exchange;
    const now = this.#now;
    const recording = new Recording(++this.#count, now(), { provider, account }, request, this.#reading);
    this.#entries.push(recording);
    if (this.#entries.length > 2 * MAX_ENTRIES) this.#entries.splice(0, MAX_ENTRIES);
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

  /** Records that a fault struck the current exchange. */
  noteFault(fault: string): void {
    this.#current.getStore()?.struckBy(fault);
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

  clear(): void {
    this.load({ count: 0, entries: [] });
  }

  save(): SavedJournal {
    return { count: this.#count, entries: this.#kept() };
  }

  load({ count, entries }: SavedJournal): void {
    this.#count = count;
    this.#entries.splice(0, this.#entries.length, ...entries);
  }

  #kept(): Recording[] {
    return this.#entries.slice(-MAX_ENTRIES);
  }
}
