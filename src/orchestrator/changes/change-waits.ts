import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../model/store.ts';

/** How many requests of an account may wait at the same time. */
const AT_ONCE = 32;
const RETRY_AFTER_SECONDS = 2;

/** A request that waits. */
export interface ChangeWait {
  /** Whether the wait has ended: the time is over, the client has disconnected, or the server stops. */
  readonly isOver: boolean;
  /** Resolves at the next change after this call, or when the wait ends. */
  next(): Promise<void>;
  close(): void;
}

class Wait implements ChangeWait {
  isOver = false;
  #woken = Promise.withResolvers<void>();
  readonly close: () => void;

  constructor(close: () => void) {
    this.close = close;
  }

  next(): Promise<void> {
    this.#woken = Promise.withResolvers<void>();
    if (this.isOver) this.wake();
    return this.#woken.promise;
  }

  wake(): void {
    this.#woken.resolve();
  }

  end(): void {
    this.isOver = true;
    this.wake();
  }
}

/** Requests that wait for changes of their account. Commits of any process wake them. */
export class ChangeWaits {
  readonly #clock: Clock;
  readonly #unsubscribe: () => void;
  /** Waits by account. */
  readonly #waits = new Map<string, Set<Wait>>();
  #isClosed = false;

  constructor({ store, clock }: { store: Pick<Store, 'subscribe'>; clock: Clock }) {
    this.#clock = clock;
    this.#unsubscribe = store.subscribe({
      instancesChanged: (records) => {
        for (const { accountId } of records) this.#wake(accountId);
      },
      volumesChanged: (accountIds) => {
        for (const accountId of accountIds) this.#wake(accountId);
      },
      commitsMissed: () => {
        for (const accountId of this.#waits.keys()) this.#wake(accountId);
      },
    });
  }

  /** How many requests are waiting. */
  get size(): number {
    return [...this.#waits.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Opens a wait of at most `waitMs` milliseconds. With 0, the wait has ended at once.
   *
   * @param client aborted when the client has disconnected
   * @throws {ApiError} `too_many_requests`
   */
  open(accountId: string, waitMs: number, client: AbortSignal): ChangeWait {
    const waits = this.#waits.get(accountId) ?? new Set();
    if (waitMs > 0 && waits.size >= AT_ONCE)
      throw new ApiError(
        'too_many_requests',
        `${AT_ONCE} requests of this account are waiting for changes.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    const wait = new Wait(() => {
      timer?.cancel();
      client.removeEventListener('abort', end);
      if (waits.delete(wait) && waits.size === 0) this.#waits.delete(accountId);
    });
    const end = (): void => wait.end();
    const isOver = waitMs <= 0 || this.#isClosed || client.aborted;
    const timer = isOver ? undefined : this.#clock.setTimer(waitMs, end);
    if (isOver) wait.end();
    else {
      client.addEventListener('abort', end);
      waits.add(wait);
      this.#waits.set(accountId, waits);
    }
    return wait;
  }

  /** Ends all current and later waits. */
  close(): void {
    this.#isClosed = true;
    this.#unsubscribe();
    for (const waits of this.#waits.values()) for (const wait of waits) wait.end();
  }

  #wake(accountId: string): void {
    for (const wait of this.#waits.get(accountId) ?? []) wait.wake();
  }
}
