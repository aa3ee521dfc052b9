import { createHmac, scrypt, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { ApiError } from '../../contract/errors.ts';
import type { Random } from '../../ports/clock.ts';

/** Each check keeps a CPU busy for some tenths of a second. If there are several CPUs, one stays free. */
const AT_ONCE = Math.max(1, Math.min(2, availableParallelism() - 1));
const MAX_REMEMBERED = 10_000;

export type CheckPassword = (password: string, stored: string | null) => Promise<boolean>;

/**
 * Checks passwords, few at a time. Addresses take turns, so a flood of wrong passwords from one delays another by at
 * most one check. A password that was right before in this process is recognised at once by its digest; the key of the
 * digest is only in memory.
 */
export class PasswordChecks {
  readonly #key: Buffer;
  readonly #check: CheckPassword;
  readonly #slots = new FairSlots(AT_ONCE);
  /** The digest of the right password for each stored hash. */
  readonly #right = new Map<string, Buffer>();

  constructor(random: Random, check: CheckPassword = isPassword) {
    this.#key = random.bytes(32);
    this.#check = check;
  }

  /**
   * Whether `password` matches `stored`. `stored` is null for an account without a password; the check takes the same
   * time. A check does not begin once `signal` is aborted or this is closed.
   *
   * @throws {ApiError} if the client has disconnected, or the server stops; the client does not see it
   */
  async isRight(
    password: string,
    stored: string | null,
    { address, signal }: { address: string; signal: AbortSignal },
  ): Promise<boolean> {
    const digest = createHmac('sha256', this.#key)
      .update(JSON.stringify([stored, password]))
      .digest();
    const known = stored === null ? undefined : this.#right.get(stored);
    if (known !== undefined && timingSafeEqual(known, digest)) return true;
    const isRight = await this.#slots.run(address, () => this.#check(password, stored), signal);
    if (isRight && stored !== null) this.#remember(stored, digest);
    return isRight;
  }

  close(): void {
    this.#slots.close();
  }

  #remember(stored: string, digest: Buffer): void {
    const oldest = this.#right.size >= MAX_REMEMBERED ? this.#right.keys().next().value : undefined;
    if (oldest !== undefined) this.#right.delete(oldest);
    this.#right.set(stored, digest);
  }
}

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(
  scrypt,
);
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
const HASH_BYTES = 32;

/** Returns `scrypt$<salt>$<hash>`, both base64. */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = random.bytes(16);
  const hash = await derive(password, salt, HASH_BYTES, COST);
  return `scrypt$${salt.toString('base64')}$${hash.toString('base64')}`;
}

/** Takes the same time for an account without a password (`null`) as for a wrong password. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, salt = '', hash = ''] = (stored ?? 'scrypt$AAAAAAAAAAAAAAAAAAAAAA==$').split('$');
  const actual = await derive(password, Buffer.from(salt, 'base64'), HASH_BYTES, COST);
  const expected = Buffer.from(hash, 'base64');
  return expected.length === HASH_BYTES && timingSafeEqual(actual, expected);
}

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
