import { hash } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import type { Clock, Timer } from '../../ports/clock.ts';

/** `burst` requests at once, then `perSecond`. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

const MAX_KEYS = 500_000;

/** A token bucket for each key, kept as one number: the time at which the bucket is full again (GCRA). */
export class Meter {
  readonly #intervalMs: number;
  readonly #toleranceMs: number;
  readonly #fullAt = new Map<string, number>();

  constructor({ perSecond, burst }: Bucket) {
    this.#intervalMs = 1000 / perSecond;
    this.#toleranceMs = (burst - 1) * this.#intervalMs;
  }

  /** Undoes one `take`. */
  undoTake(key: string): void {
    const fullAt = this.#fullAt.get(key);
    if (fullAt !== undefined) this.#fullAt.set(key, fullAt - this.#intervalMs);
  }

  /** Takes one token. Returns how long to wait in milliseconds if there is none; then nothing is taken. */
  take(key: string, now: number): number {
    const fullAt = this.#fullAt.get(key) ?? now;
    const waitMs = fullAt - this.#toleranceMs - now;
    if (waitMs > 0) return waitMs;
    if (this.#fullAt.size >= MAX_KEYS) this.#fullAt.clear();
    this.#fullAt.set(key, Math.max(fullAt, now) + this.#intervalMs);
    return 0;
  }
}

export interface RateLimitOptions {
  enabled: boolean;
  pollsPerInstance: Bucket;
  requestsPerAccount: Bucket;
  createsPerAccount: Bucket;
  /** Limit on issued tokens. {@link FailedLogins} limits failed logins. */
  tokensPerAccount: Bucket;
}

/**
 * O: Limits: "any rate limit the orchestrator applies must accommodate one poll per active instance per 10 seconds plus
 * catalog refreshes". A poll counts only against its own instance, so a client within the contract is never refused,
 * for any number of instances.
 */
export class RateLimits {
  readonly #clock: Clock;
  readonly #options: RateLimitOptions;
  readonly #polls: Meter;
  readonly #requests: Meter;
  readonly #creates: Meter;
  readonly #tokens: Meter;

  constructor(clock: Clock, options: RateLimitOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#polls = new Meter(options.pollsPerInstance);
    this.#requests = new Meter(options.requestsPerAccount);
    this.#creates = new Meter(options.createsPerAccount);
    this.#tokens = new Meter(options.tokensPerAccount);
  }

  /** Whether the instance may be polled now, even if it is destroyed. */
  admitsPoll(instanceId: string): boolean {
    return !this.#options.enabled || this.#polls.take(instanceId, this.#clock.now()) === 0;
  }

  /** Like {@link admitsPoll}, but throws. @throws {ApiError} `too_many_requests` */
  admitPoll(instanceId: string): void {
    if (this.#options.enabled) admit(this.#polls, instanceId, this.#clock.now());
  }

  /** @throws {ApiError} `too_many_requests` */
  admitRequest(accountId: string): void {
    if (this.#options.enabled) admit(this.#requests, accountId, this.#clock.now());
  }

  /** @throws {ApiError} `too_many_requests` */
  admitCreate(accountId: string): void {
    if (this.#options.enabled) admit(this.#creates, accountId, this.#clock.now());
  }

  /**
   * Counts a token issued to an account. Call the returned function to undo that, if the token is not issued.
   *
   * @throws {ApiError} `too_many_requests`
   */
  admitToken(accountId: string): () => void {
    if (!this.#options.enabled) return () => undefined;
    admit(this.#tokens, accountId, this.#clock.now());
    return () => this.#tokens.undoTake(accountId);
  }
}

function admit(meter: Meter, key: string, now: number): void {
  const waitMs = meter.take(key, now);
  if (waitMs > 0) throw tooMany(waitMs);
}

function tooMany(waitMs: number): ApiError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new ApiError('too_many_requests', `Too many requests; try again in ${retryAfterSeconds} s.`, {
    retryAfterSeconds,
  });
}

/** Failures of one name from one address that are answered without a delay, and how long one counts: six seconds. */
const FREE_FAILURES: Bucket = { burst: 10, perSecond: 1 / 6 };

/**
 * Slows down guessing: after some failed logins with a name from an address, the answer to each further failure is
 * delayed by up to six seconds. A correct credential is never delayed.
 */
export class FailedLogins {
  readonly #clock: Clock;
  readonly #failures: Meter | undefined;
  readonly #delayed = new Map<Timer, () => void>();
  #isClosed = false;

  constructor(clock: Clock, { enabled }: { enabled: boolean }) {
    this.#clock = clock;
    this.#failures = enabled ? new Meter(FREE_FAILURES) : undefined;
  }

  /**
   * Counts a failure. Resolves when it may be answered, or when the client has disconnected. `name` is undefined if an
   * API key was wrong.
   */
  async delay(name: string | undefined, address: string, client: AbortSignal): Promise<void> {
    if (this.#failures === undefined || this.#isClosed) return;
    // The key is a hash, so that a long name takes no more memory.
    const key = hash('sha256', JSON.stringify([name ?? null, address]), 'base64');
    const delayMs = this.#failures.take(key, this.#clock.now());
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

  /** Ends all delays. */
  close(): void {
    this.#isClosed = true;
    for (const release of this.#delayed.values()) release();
  }
}
