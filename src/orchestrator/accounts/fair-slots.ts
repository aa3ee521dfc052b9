import { ApiError } from '../../contract/errors.ts';

interface Waiter {
  start: () => void;
  refuse: (error: ApiError) => void;
}

/** Runs a few jobs at a time. Owners take turns, so an owner with many jobs does not delay the jobs of others. */
export class FairSlots {
  readonly #limit: number;
  #running = 0;
  #isClosed = false;
  /** The waiting jobs by owner. The first owner in the map is next. */
  readonly #waiting = new Map<string, Set<Waiter>>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many jobs are waiting. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, queue) => sum + queue.size, 0);
  }

  /**
   * Runs a job once it has a slot.
   *
   * @throws {ApiError} if `signal` is aborted or this is closed before the job begins
   */
  async run<T>(owner: string, job: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#isClosed) throw shuttingDown();
    if (signal.aborted) throw wentAway();
    if (this.#running < this.#limit) this.#running++;
    else await this.#wait(owner, signal);
    try {
      return await job();
    } finally {
      this.#passOn();
    }
  }

  /** Refuses all jobs that have not begun, and those to come. */
  close(): void {
    this.#isClosed = true;
    for (const queue of this.#waiting.values()) for (const waiter of queue) waiter.refuse(shuttingDown());
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
      reject(wentAway());
    };
    signal.addEventListener('abort', leave);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Gives the slot to the next job. The owner of that job goes to the end of the queue. */
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

const shuttingDown = () => new ApiError('unavailable', 'The orchestrator is shutting down; try again.');
const wentAway = () =>
  new ApiError('request_timeout', 'The client disconnected while its request was queued.');
