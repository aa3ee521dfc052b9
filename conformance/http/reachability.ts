import type { Exchange } from '../transcript/records.ts';
import type { Clock } from './clock.ts';

/** After this time the user is informed. */
const TOLD_AFTER_MS = 5_000;
/** After this time the run gives up. */
const LOST_AFTER_MS = 60_000;
const ASK_AGAIN_MS = 1_000;

/** The target no longer accepts connections. */
export class TargetLost extends Error {
  override readonly name = 'TargetLost';
}

/**
 * Waits while the target accepts no connections. Such a request had no effect, so any request may be repeated. After
 * giving up, requests are sent without waiting until the target answers again.
 */
export class Reachability {
  readonly #clock: Clock;
  readonly #onSilence: (text: string) => void;
  #since: number | undefined;
  #isTold = false;
  isLost = false;

  constructor(clock: Clock, onSilence: (text: string) => void) {
    this.#clock = clock;
    this.#onSilence = onSilence;
  }

  /** Returns true once the request may be repeated, and false if there is no reason to wait. Throws `TargetLost`. */
  async waitAfter({ failure }: Exchange, signal?: AbortSignal): Promise<boolean> {
    if (failure === undefined || !['connect', 'dns'].includes(failure.kind)) {
      this.#since = undefined;
      this.#isTold = false;
      this.isLost = false;
      return false;
    }
    if (this.isLost) return false;
    const now = this.#clock.now();
    this.#since ??= now;
    const lastedMs = now - this.#since;
    if (lastedMs >= LOST_AFTER_MS) {
      this.isLost = true;
      throw new TargetLost(`${failure.message}, for ${Math.round(lastedMs / 1000)} s`);
    }
    if (lastedMs >= TOLD_AFTER_MS && !this.#isTold) {
      this.#isTold = true;
      this.#onSilence(
        `${failure.message}, for ${Math.round(lastedMs / 1000)} s: the run pauses and asks again, for ${LOST_AFTER_MS / 1000} s in all`,
      );
    }
    await this.#clock.sleep(ASK_AGAIN_MS, signal);
    return true;
  }
}
