import type { Clock, Timer } from '../../ports/clock.ts';
import type { Limits } from './channel.ts';
import { AnswerLost, NotSent } from './errors.ts';
import type { Method } from './protocol/messages.ts';

interface RequestsOptions {
  clock: Clock;
  timeoutMs: number;
  /** Writes a line. Returns false if the pipe is full: then wait for `resume`. */
  write: (line: string) => boolean;
  /** Ends the program for this reason. */
  kill: (reason: string) => void;
  /** Resolves when all processes of the program have ended. */
  ended: Promise<unknown>;
}

/** The limit that ended the wait for an answer. */
type Cause = 'time' | 'signal';

/** A request, until it is answered or given up. */
export interface Request {
  method: Method;
  line: string;
  sentAt: number;
  withinMs: number;
  limits: Limits | undefined;
  isWritten: boolean;
  isCancelled: boolean;
  /** Why the request was given up. */
  givenUpBy: Cause | undefined;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
  timer: Timer;
}

/** A driver that answers nothing for this many time limits is considered hung. */
const SILENT_DEADLINES = 3;
/** Time in which a program must answer a cancelled request, in milliseconds. */
const CANCEL_MS = 5_000;

/**
 * The requests of one run of a program. It limits how many are written at once, and each has a deadline. A request in
 * the queue has not begun.
 */
export class Requests {
  readonly #options: RequestsOptions;
  readonly #open = new Map<string, Request>();
  /** Requests that were given up and may still be under way. */
  readonly #late = new Map<string, Request>();
  #queue: Request[] = [];
  #isBlocked = false;
  #concurrency = 1;
  #canCancel = false;
  /** Requests written but not answered, including those given up. */
  #inFlight = 0;
  #unansweredSince: number | undefined;
  #nextId = 1;
  /** The last line that was not an answer, for the error of an unanswered request. */
  garbage = '';

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /** @throws {NotSent | AnswerLost} */
  ask(method: Method, args: object, timeoutMs = this.#options.timeoutMs, limits?: Limits): Promise<unknown> {
    const { clock } = this.#options;
    const sentAt = clock.now();
    const withinMs = Math.min(timeoutMs, (limits?.deadline ?? Number.POSITIVE_INFINITY) - sentAt);
    if (withinMs <= 0 || limits?.signal.aborted === true)
      return Promise.reject(new NotSent(`${method} was cancelled before it was sent to the driver`));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = String(this.#nextId++);
    const line = `${JSON.stringify({ id, method, expires_at: Math.floor(sentAt + withinMs), ...args })}\n`;
    const timer = clock.setTimer(withinMs, () => this.#giveUp(id, 'time'));
    const request = {
      method,
      line,
      sentAt,
      withinMs,
      limits,
      isWritten: false,
      isCancelled: false,
      givenUpBy: undefined,
      resolve,
      reject,
      timer,
    };
    this.#open.set(id, request);
    const abort = (): void => this.#giveUp(id, 'signal');
    limits?.signal.addEventListener('abort', abort);
    this.#unansweredSince ??= sentAt;
    this.#queue.push(request);
    this.#pump();
    return promise.finally(() => limits?.signal.removeEventListener('abort', abort));
  }

  /** Sets how many requests the program takes at once, and whether it can cancel them. */
  greeted(concurrency: number, canCancel: boolean): void {
    this.#concurrency = concurrency;
    this.#canCancel = canCancel;
    this.#pump();
  }

  resume(): void {
    this.#isBlocked = false;
    this.#pump();
  }

  /** Removes and returns the request that was answered. Undefined if there is none. */
  take(id: string): Request | undefined {
    const request = this.#late.get(id) ?? this.#open.get(id);
    if (request?.isWritten !== true) return undefined;
    this.garbage = '';
    request.timer.cancel();
    this.#open.delete(id);
    this.#late.delete(id);
    this.#inFlight--;
    this.#unansweredSince = this.#open.size === 0 ? undefined : this.#options.clock.now();
    this.#pump();
    return request;
  }

  /**
   * Rejects all requests because no more answers will come. A request that changes something rejects only when all
   * processes of the program have ended.
   */
  end(reason: string): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    this.#queue = [];
    for (const { method, isWritten, limits, timer, reject } of open) {
      timer.cancel();
      const sentence = `the driver ${reason} before it answered ${method}`;
      if (!isWritten) reject(new NotSent(sentence));
      else if (limits === undefined) reject(new AnswerLost(sentence, 'end'));
      else void this.#options.ended.then(() => reject(new AnswerLost(sentence, 'end')));
    }
  }

  #pump(): void {
    const now = this.#options.clock.now();
    while (!this.#isBlocked && this.#inFlight < this.#concurrency) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      // Timers fire late after the process was paused.
      if (now - next.sentAt >= next.withinMs) continue;
      next.isWritten = true;
      this.#inFlight++;
      this.#isBlocked = !this.#options.write(next.line);
    }
  }

  #giveUp(id: string, cause: Cause): void {
    const request = this.#open.get(id);
    if (request === undefined || request.isCancelled) return;
    if (request.isWritten && request.limits !== undefined && this.#canCancel) this.#cancel(id, request);
    else this.#forget(id, request, cause);
  }

  /** Cancels a request and waits until the program has answered it or ended. Until then it may be under way. */
  #cancel(id: string, request: Request): void {
    const { clock, write, kill } = this.#options;
    request.isCancelled = true;
    request.timer.cancel();
    request.timer = clock.setTimer(CANCEL_MS, () =>
      kill(`did not answer ${request.method} within ${CANCEL_MS / 1000} s after it was cancelled`),
    );
    write(`${JSON.stringify({ method: 'cancel', request: id })}\n`);
  }

  #forget(id: string, request: Request, cause: Cause): void {
    const { clock, timeoutMs, kill } = this.#options;
    const { method, withinMs, isWritten, timer, reject } = request;
    timer.cancel();
    this.#open.delete(id);
    this.#queue = this.#queue.filter((waiting) => waiting !== request);
    const within = cause === 'time' ? `within ${secondsOf(withinMs)} s` : 'before it was cancelled';
    if (isWritten) {
      request.givenUpBy = cause;
      this.#late.set(id, request);
      reject(new AnswerLost(`the driver did not answer ${method} ${within}${this.garbage}`, 'silence'));
    } else reject(new NotSent(this.#whyNotSent(within)));
    const silentMs = clock.now() - (this.#unansweredSince ?? clock.now());
    if (silentMs >= SILENT_DEADLINES * timeoutMs)
      kill(
        `answered nothing for ${Math.round(silentMs / 1000)} s${this.#isBlocked ? ' and reads nothing' : ''}`,
      );
  }

  #whyNotSent(within: string): string {
    if (this.#isBlocked) return `the driver did not read its requests ${within}`;
    const [oldest] = [...this.#late.values(), ...this.#open.values()].filter(({ isWritten }) => isWritten);
    const seconds = Math.round((this.#options.clock.now() - (oldest?.sentAt ?? 0)) / 1000);
    return `the driver is busy: it has not answered ${oldest?.method} for ${seconds} s, and takes ${this.#concurrency} at once`;
  }
}

const secondsOf = (ms: number): number => Math.round(ms / 100) / 10;
