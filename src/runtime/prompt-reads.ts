import { aroundMethods } from '../ports/around-methods.ts';
import { StoreUnavailable } from '../ports/errors.ts';

/** Time limit of one read, in milliseconds. A client gives up after ten seconds. */
const ANSWER_MS = 1_700;
/** Ticks in that time. One timer checks all reads: a timer for each would cost more than the read. */
const TICKS = 10;

interface Patience {
  answerMs?: number;
  /**
   * A read that a working database answers at once. While it succeeds, slow reads, such as an operator's over all rows,
   * are not given up. Absent: every slow read is given up.
   */
  prove?: () => Promise<unknown>;
}

interface Waiting {
  ticksLeft: number;
  isProved: boolean;
  giveUp: (error: StoreUnavailable) => void;
}

/** Returns `store` with a time limit on its reads. A read that exceeds it fails as if the database did not answer. */
export function withPromptReads<Store extends { read: object }>(
  store: Store,
  patience: Patience = {},
): Store {
  const deadline = new AnswerDeadline(patience);
  const repositories = Object.entries(store.read as Record<string, object>).map(([name, repository]) => [
    name,
    aroundMethods(repository, (call) => deadline.of(call())),
  ]);
  return { ...store, read: Object.fromEntries(repositories) };
}

/** Rejects reads that the database does not answer in time. */
export class AnswerDeadline {
  readonly #answerMs: number;
  readonly #prove: (() => Promise<unknown>) | undefined;
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ answerMs = ANSWER_MS, prove }: Patience = {}) {
    this.#answerMs = answerMs;
    this.#prove = prove;
  }

  /** Returns `answer` with a deadline. @throws {StoreUnavailable} if it is late */
  of<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { ticksLeft: TICKS, isProved: false, giveUp: reject };
      this.#waiting.add(waiting);
      this.#timer ??= this.#nextTick();
      answer.then(
        (value) => {
          this.#waiting.delete(waiting);
          resolve(value);
        },
        (error) => {
          this.#waiting.delete(waiting);
          reject(error);
        },
      );
    });
  }

  /** Unreferenced, so the timer does not keep the process alive. */
  #nextTick(): NodeJS.Timeout {
    return setTimeout(() => this.#tick(), this.#answerMs / TICKS).unref();
  }

  /** Counts ticks, not time: in a busy process, an answer may have arrived without having been read. */
  #tick(): void {
    for (const waiting of this.#waiting) {
      waiting.ticksLeft--;
      if (waiting.ticksLeft === TICKS / 2) this.#proveFor(waiting);
      if (waiting.ticksLeft > 0) continue;
      if (waiting.isProved) {
        waiting.ticksLeft = TICKS;
        waiting.isProved = false;
        continue;
      }
      this.#waiting.delete(waiting);
      waiting.giveUp(new StoreUnavailable(`the database has not answered a read for ${this.#answerMs} ms`));
    }
    this.#timer = this.#waiting.size === 0 ? undefined : this.#nextTick();
  }

  #proveFor(waiting: Waiting): void {
    this.#prove?.().then(
      () => {
        waiting.isProved = true;
      },
      () => undefined,
    );
  }
}
