import { aroundMethods } from '../ports/around-methods.ts';
import type { Clock, Timer } from '../ports/clock.ts';
import { StoreUnavailable } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';

/** Interval between attempts to write after a failure. */
const TRY_AGAIN_MS = 3_000;

interface Parts {
  clock: Clock;
  log: Pick<Log, 'info' | 'error'>;
  /** Writes about as much as a request does, and removes it again. */
  prove: () => Promise<void>;
}

/**
 * Whether the database accepts writes. After a failed write it counts as failing until a test write succeeds. An
 * ordinary write that succeeds proves nothing: it may have changed no row, or used the last free page.
 */
export class WriteHealth {
  readonly #parts: Parts;
  #failedAt: number | undefined;
  #failures = 0;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get areWritesTaken(): boolean {
    return this.#failedAt === undefined;
  }

  /** A copy of these writes that records whether the database failed. */
  of<Writes extends object>(writes: Writes): Writes {
    return aroundMethods(writes, async (write) => {
      try {
        return await write();
      } catch (error) {
        if (error instanceof StoreUnavailable) this.#failed(error);
        throw error;
      }
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #failed(error: StoreUnavailable): void {
    this.#failures++;
    if (this.#failedAt !== undefined || this.#isStopped) return;
    const { clock, log } = this.#parts;
    this.#failedAt = clock.now();
    log.error(
      { err: error },
      `the database does not answer or takes no writes (${error.message}): creates and changes are answered with 503, reads continue if possible; check that it runs and that its disk has space; /readyz is 503 until a write succeeds again`,
    );
    this.#tryLater();
  }

  #tryLater(): void {
    if (!this.#isStopped) this.#timer = this.#parts.clock.setTimer(TRY_AGAIN_MS, () => void this.#tryAgain());
  }

  async #tryAgain(): Promise<void> {
    const { clock, log, prove } = this.#parts;
    const failures = this.#failures;
    const isProved = await prove().then(
      () => true,
      () => false,
    );
    // A write may have failed after the test write succeeded.
    if (!isProved || failures !== this.#failures) return this.#tryLater();
    const seconds = Math.round((clock.now() - (this.#failedAt ?? clock.now())) / 1000);
    this.#failedAt = undefined;
    log.info({ seconds }, 'the database accepts writes again');
  }
}

/**
 * Logs an error that the database caused as a warning: `WriteHealth` logs the one alarm while the database does not
 * answer, and must use the original log.
 */
export function withOneStoreAlarm(log: Log): Log {
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => {
      const isOfStore = 'err' in fields && fields.err instanceof StoreUnavailable;
      if (isOfStore) log.warn(fields, message);
      else log.error(fields, message);
    },
  };
}
