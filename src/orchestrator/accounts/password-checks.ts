import { createHmac, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { Random } from '../../ports/clock.ts';
import { FairSlots } from './fair-slots.ts';
import { isPassword } from './password.ts';

/** Each check keeps a CPU busy for some tenths of a second. One is left for everybody else. */
const AT_ONCE = Math.max(1, Math.min(2, availableParallelism() - 1));
const MAX_REMEMBERED = 10_000;

/**
 * Checks passwords, few at a time. Addresses take turns, so one that floods us with wrong ones delays another by one
 * check at most. A password that was right before, in this process, is known again at once: a flood does not touch
 * whoever logs in regularly. What is remembered for that is a digest under a key that lives in memory only.
 */
export class PasswordChecks {
  readonly #key: Buffer;
  readonly #check: typeof isPassword;
  readonly #slots = new FairSlots(AT_ONCE);
  /** For each stored hash, the digest of the password that it is of. */
  readonly #right = new Map<string, Buffer>();

  constructor(random: Random, check = isPassword) {
    this.#key = random.bytes(32);
    this.#check = check;
  }

  /**
   * Whether `password` is the one that `stored` is of; null: the account has none, which takes as long. A check that has
   * not begun when `signal` says that the client is gone never does.
   *
   * @throws {ApiError} for nobody to read: the client is gone, or the server stops
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
