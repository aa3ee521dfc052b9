import { ApiError } from '../../contract/errors.ts';

interface Waiter {
  start: () => void;
  refuse: (error: ApiError) => void;
}

/** Runs a few jobs at a time. Whoever waits takes turns: one with many jobs holds up nobody else's. */
export class FairSlots {
  readonly #limit: number;
  #running = 0;
  /** The jobs that wait, by whose they are; the first in the map is next. */
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many jobs wait. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, queue) => sum + queue.size, 0);
  }

  /** @throws {ApiError} if `signal` was aborted, or this was closed, before the job began */
  async run<T>(owner: string, job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#running < this.#limit) this.#running++;
    else await this.#wait(owner, signal);
    try {
      return await job();
    } finally {
      this.#passOn();
    }
  }

  /** Refuses every job that has not begun. */
  close(): void {
    const error = new ApiError('unavailable', 'The orchestrator is shutting down; try again.');
    for (const queue of this.#waiting.values()) for (const waiter of queue) waiter.refuse(error);
    this.#waiting.clear();
  }

  async #wait(owner: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { start: resolve, refuse: reject };
    const queue = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, queue.add(waiter));
    const leave = (): void => {
      if (!queue.delete(waiter)) return;
      if (queue.size === 0) this.#waiting.delete(owner);
      reject(new ApiError('request_timeout', 'The client went away before its turn came.'));
    };
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Hands the slot to the next job; whoever had it goes to the end. */
  #passOn(): void {
    const [next] = this.#waiting;
    const [waiter] = next?.[1] ?? [];
    if (next === undefined || waiter === undefined) {
      this.#running--;
      return;
    }
    const [owner, queue] = next;
    queue.delete(waiter);
    this.#waiting.delete(owner);
    if (queue.size > 0) this.#waiting.set(owner, queue);
    waiter.start();
  }
}
