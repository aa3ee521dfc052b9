import { AsyncLocalStorage } from 'node:async_hooks';
import type { Layer } from '../provider.ts';
import type { JournalEntry } from './entry.ts';
import { isMatch, type JournalFilter } from './filter.ts';
import { Reading, Recording } from './recording.ts';

/** Older entries are dropped. */
const MAX_ENTRIES = 10_000;
const MAX_BODY_BYTES = 64 * 1024;

/** What a journal had at one moment. */
export interface SavedJournal {
  count: number;
  entries: readonly Recording[];
}

/** Every exchange with the servers of a sandbox, in the order in which the requests came. */
export class Journal {
  readonly #now: () => number;
  readonly #entries: Recording[] = [];
  /** The exchange that the layers inside of this one are about. */
  readonly #current = new AsyncLocalStorage<Recording>();
  readonly #reading: Reading;
  #count = 0;

  constructor(now: () => number, maxBodyBytes = MAX_BODY_BYTES) {
    this.#now = now;
    this.#reading = new Reading(maxBodyBytes);
  }

  /** Outside of all faults: what the caller sees. */
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

  /** Inside of all faults: what the server answers. */
  readonly serverLayer: Layer = async (exchange, next) => {
    const response = await next(exchange.request);
    this.#current.getStore()?.served(response, this.#reading);
    return response;
  };

  /** Notes that a fault struck the exchange that is under way. */
  noteFault(fault: string): void {
    this.#current.getStore()?.struckBy(fault);
  }

  /** What fits, the oldest first; of more than `limit`, the last. */
  async entries(filter: JournalFilter = {}): Promise<JournalEntry[]> {
    await this.#reading.settled();
    const fitting = this.#kept()
      .map((recording) => recording.toEntry())
      .filter((entry) => isMatch(entry, filter));
    return filter.limit === undefined ? fitting : fitting.slice(-filter.limit);
  }

  /** How many exchanges there were, those that are dropped included. */
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
