import { hash } from 'node:crypto';
import type { Clock, Timer } from '../../ports/clock.ts';

/** So many failures of one name from one address are answered at once. */
const FREE_FAILURES = 10;
/** One failure is forgotten in so long. */
const FORGET_AFTER_MS = 6_000;
/** The longest delay of an answer to a failure. */
const MAX_DELAY_MS = 10_000;
/** The rest is forgotten, the longest unused first: whoever makes names up does not fill the memory. */
const MAX_NAMES = 20_000;

/**
 * Slows down guessing: the answer to a failed login is delayed, the longer the more logins with this name from this
 * address have failed. A correct credential is never delayed.
 */
export class FailedLogins {
  readonly #clock: Clock;
  readonly #isEnabled: boolean;
  /** When all failures of a name from an address are forgotten. */
  readonly #forgottenAt = new Map<string, number>();
  readonly #delayed = new Map<Timer, () => void>();
  #isClosed = false;

  constructor(clock: Clock, { enabled }: { enabled: boolean }) {
    this.#clock = clock;
    this.#isEnabled = enabled;
  }

  /**
   * Counts a failure and resolves when it may be answered, or the client has gone. `name` is undefined where an API key
   * was wrong.
   */
  async delay(name: string | undefined, address: string, client: AbortSignal): Promise<void> {
    if (!this.#isEnabled || this.#isClosed) return;
    const delayMs = this.#count(name, address);
    if (delayMs === 0 || client.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#clock.setTimer(delayMs, resolve);
    this.#delayed.set(timer, resolve);
    client.addEventListener('abort', () => resolve());
    await promise;
    timer.cancel();
    this.#delayed.delete(timer);
  }

  /** How many answers are held. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** How many names with addresses are remembered. */
  get size(): number {
    return this.#forgottenAt.size;
  }

  /** Lets every answer go that is held. */
  close(): void {
    this.#isClosed = true;
    for (const release of this.#delayed.values()) release();
  }

  #count(name: string | undefined, address: string): number {
    // Of one length, however long the name is.
    const key = hash('sha256', JSON.stringify([name ?? null, address]), 'base64');
    const now = this.#clock.now();
    const longestAt = now + FREE_FAILURES * FORGET_AFTER_MS + MAX_DELAY_MS;
    const forgottenAt = Math.min(
      longestAt,
      Math.max(now, this.#forgottenAt.get(key) ?? now) + FORGET_AFTER_MS,
    );
    this.#forgottenAt.delete(key);
    const oldest = this.#forgottenAt.size >= MAX_NAMES ? this.#forgottenAt.keys().next().value : undefined;
    if (oldest !== undefined) this.#forgottenAt.delete(oldest);
    this.#forgottenAt.set(key, forgottenAt);
    return Math.max(0, forgottenAt - FREE_FAILURES * FORGET_AFTER_MS - now);
  }
}
