import { ApiError } from '../../contract/errors.ts';
import type { Clock } from '../ports/clock.ts';

/** `burst` requests at once, then `perSecond`. */
export interface Bucket {
  perSecond: number;
  burst: number;
}

export interface RateLimitOptions {
  enabled: boolean;
  pollsPerInstance: Bucket;
  requestsPerAccount: Bucket;
  createsPerAccount: Bucket;
}

/** Failed logins: ten at once, then one in six seconds, for a username and for an address. */
const LOGINS: Bucket = { perSecond: 1 / 6, burst: 10 };
const MAX_KEYS = 500_000;

/**
 * O: Limits: "any rate limit the orchestrator applies must accommodate one poll per active instance per 10
 * seconds plus catalog refreshes". A poll counts against its own instance only, so a client that keeps to the
 * contract cannot be refused, however many instances it has.
 */
export class RateLimits {
  readonly #clock: Clock;
  readonly #options: RateLimitOptions;
  readonly #polls: Meter;
  readonly #requests: Meter;
  readonly #creates: Meter;
  readonly #logins = new Meter(LOGINS);

  constructor(clock: Clock, options: RateLimitOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#polls = new Meter(options.pollsPerInstance);
    this.#requests = new Meter(options.requestsPerAccount);
    this.#creates = new Meter(options.createsPerAccount);
  }

  /** Whether the instance may be polled now. */
  admitsPoll(instanceId: string): boolean {
    return !this.#options.enabled || this.#polls.take(instanceId, this.#clock.now()) === 0;
  }

  /** @throws {ApiError} `too_many_requests` */
  admitRequest(accountId: string): void {
    this.#admit(this.#requests, accountId);
  }

  /** @throws {ApiError} `too_many_requests` */
  admitCreate(accountId: string): void {
    this.#admit(this.#creates, accountId);
  }

  /** Counts a login that failed. */
  loginFailed(subjects: readonly string[]): void {
    for (const subject of subjects) this.#logins.take(subject, this.#clock.now());
  }

  /** @throws {ApiError} `too_many_requests` once too many logins of any of the subjects have failed */
  admitLogin(subjects: readonly string[]): void {
    const waitMs = Math.max(...subjects.map((subject) => this.#logins.waitMs(subject, this.#clock.now())));
    if (this.#options.enabled && waitMs > 0) throw tooMany(waitMs);
  }

  #admit(meter: Meter, accountId: string): void {
    if (!this.#options.enabled) return;
    const waitMs = meter.take(accountId, this.#clock.now());
    if (waitMs > 0) throw tooMany(waitMs);
  }
}

function tooMany(waitMs: number): ApiError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new ApiError('too_many_requests', `Too many requests; try again in ${retryAfterSeconds} s.`, {
    retryAfterSeconds,
  });
}

/** A token bucket for each key, kept as one number: the time at which the bucket is full again (GCRA). */
class Meter {
  readonly #intervalMs: number;
  readonly #toleranceMs: number;
  readonly #fullAt = new Map<string, number>();

  constructor({ perSecond, burst }: Bucket) {
    this.#intervalMs = 1000 / perSecond;
    this.#toleranceMs = (burst - 1) * this.#intervalMs;
  }

  waitMs(key: string, now: number): number {
    return Math.max(0, (this.#fullAt.get(key) ?? now) - this.#toleranceMs - now);
  }

  /** Takes one; returns how long to wait where there is none, and then takes nothing. */
  take(key: string, now: number): number {
    const fullAt = this.#fullAt.get(key) ?? now;
    const waitMs = fullAt - this.#toleranceMs - now;
    if (waitMs > 0) return waitMs;
    if (this.#fullAt.size >= MAX_KEYS) this.#fullAt.clear();
    this.#fullAt.set(key, Math.max(fullAt, now) + this.#intervalMs);
    return 0;
  }
}
