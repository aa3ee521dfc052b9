import { hash } from 'node:crypto';
import type { Clock, Timer } from '../../ports/clock.ts';

/** How many failures of one name from one address are answered without a delay. */
const FREE_FAILURES = 10;
/** The time after which one failure is forgotten, in milliseconds. */
const FORGET_AFTER_MS = 6_000;
/** The longest delay of an answer, in milliseconds. */
const MAX_DELAY_MS = 10_000;
/**
 * How many names are remembered. The longest unused are dropped first, so that made-up names do not fill the memory.
 */
const MAX_NAMES = 20_000;

/**
 * Slows down guessing: the more logins with a name from an address have failed, the longer the answer to the next
 * failure is delayed. A correct credential is never delayed.
 */
export class FailedLogins {
  readonly #clock: Clock;
  readonly #isEnabled: boolean;
  /** For each name and address, the time at which all failures are forgotten. */
  readonly #forgottenAt = new Map<string, number>();
  readonly #delayed = new Map<Timer, () => void>();
  #isClosed = false;

  constructor(clock: Clock, { enabled }: { enabled: boolean }) {
    this.#clock = clock;
    this.#isEnabled = enabled;
  }

  /**
   * Counts a failure. Resolves when it may be answered, or when the client has disconnected. `name` is undefined if an
   * API key was wrong.
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

  /** How many answers are being delayed. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** How many pairs of name and address are remembered. */
  get size(): number {
    return this.#forgottenAt.size;
  }

  /** Ends all delays. */
  close(): void {
    this.#isClosed = true;
    for (const release of this.#delayed.values()) release();
  }

  #count(name: string | undefined, address: string): number {
    // The key is a hash, so that a long name takes no more memory.
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
