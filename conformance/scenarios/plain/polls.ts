import { instancePath } from '../../contract/paths.ts';
import { stringField } from '../../text/json.ts';
import { statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Instance, Session, Wait } from '../session.ts';
import { PACE, type Pace } from './pace.ts';

export interface Following extends Wait {
  /** Whether a change is under way, so that polls follow closer on each other. */
  isUnderWay: boolean;
  /** How long to poll, in milliseconds; default: the run's patience. */
  forMs?: number;
  /** Polls no longer than until this is settled. */
  until?: Promise<unknown>;
  /** Whether a user waits for the change. */
  isAwaited?: true;
}

/** An entity tag as a marketplace keeps it. */
const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,200}"$/;

/** Polls one instance as a marketplace polls a machine that it rents. */
export class Polls {
  readonly #session: Session;
  readonly #instance: Instance;
  readonly #pace: Pace;
  #dueAt: number;
  #wake = (): void => {};
  #lastStatus: string | undefined;
  /** The entity tag of the last answer at rest, and until when it is sent. */
  #mark: { etag: string; until: number } | undefined;

  /** The first poll is due a poll interval after the create. */
  constructor(session: Session, instance: Instance, pace: Pace) {
    this.#session = session;
    this.#instance = instance;
    this.#pace = pace;
    this.#dueAt = session.now() + PACE.pollMs[0];
  }

  /** Polls at once, since a login has succeeded. To a marketplace, that poll shows a change: the machine is in use. */
  proved(): void {
    this.#lastStatus = undefined;
    this.soon(0);
  }

  /** Makes the next poll due after `ms`, or earlier. */
  soon(ms: number): void {
    this.#dueAt = Math.min(this.#dueAt, this.#session.now() + ms);
    this.#wake();
  }

  /**
   * Polls until `isReached` accepts the status ('404' for a read answered 404), and returns that read. Undefined once the
   * time is over, or once the wait cannot succeed any more.
   */
  async follow(
    step: string,
    isReached: (status: string | undefined) => boolean,
    wait: Following,
  ): Promise<Exchange | undefined> {
    const session = this.#session;
    const since = session.now();
    let endsAt = since + (wait.forMs ?? session.settings.readyTimeoutMs);
    const end = (): void => {
      endsAt = session.now();
      this.#wake();
    };
    void wait.until?.then(end, end);
    const isInVain = session.hopeFor('instance', wait);
    session.waitsFor(wait.text);
    while (await this.#isDueBefore(() => endsAt)) {
      const read = await this.#read(step, !wait.isUnderWay);
      const isOver = isReached(this.#lastStatus);
      const isAwaited = wait.isAwaited === true && session.now() - since < PACE.awaitedForMs;
      this.#dueAt =
        !isOver && isAwaited
          ? read.sentAt + PACE.awaitedMs
          : this.#pace.nextPollAt(read.sentAt, wait.isUnderWay && !isOver, wallAtStart(read));
      if (isOver) return read;
      if (statusOf(read) !== 304 && isInVain(read)) return undefined;
    }
    return undefined;
  }

  /** Waits until the next poll is due. False if the time is over before. */
  async #isDueBefore(end: () => number): Promise<boolean> {
    const session = this.#session;
    for (;;) {
      const until = Math.min(this.#dueAt, end());
      if (until <= session.now()) return this.#dueAt < end();
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await session
        .sleep(until - session.now(), AbortSignal.any([session.signal, woken.signal]))
        .catch((error: unknown) => {
          if (!woken.signal.aborted) throw error;
        });
    }
  }

  /** An instance at rest is read with the entity tag of its last answer, and now and then without. */
  async #read(step: string, isAtRest: boolean): Promise<Exchange> {
    const session = this.#session;
    const now = session.now();
    const mark = isAtRest && this.#mark !== undefined && now < this.#mark.until ? this.#mark : undefined;
    const read = await session.send(step, {
      method: 'GET',
      path: instancePath(this.#instance),
      ...(mark !== undefined && { ifNoneMatch: mark.etag }),
    });
    if (statusOf(read) === 304) return read;
    const status = statusOf(read) === 404 ? '404' : stringField(successOf(read), 'status');
    const isConfirmed = isAtRest && status !== undefined && status === this.#lastStatus;
    const etag = read.answer?.headers['etag'] ?? '';
    const until = now + PACE.longestMarkMs * (0.5 + this.#pace.fraction() / 2);
    this.#mark = isConfirmed && ETAG.test(etag) ? { etag, until } : undefined;
    this.#lastStatus = status;
    return read;
  }
}

/** The wall clock at the start of the run, in milliseconds. */
function wallAtStart({ wall, sentAt }: Exchange): number {
  return Date.parse(wall) - Math.round(sentAt);
}
