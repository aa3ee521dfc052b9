import type { Channel, Limits } from '../../../src/drivers/exec/channel.ts';
import { AnswerLost, NotSent } from '../../../src/drivers/exec/errors.ts';
import type { Method, Request } from '../../../src/drivers/exec/protocol/messages.ts';
import { Requests } from '../../../src/drivers/exec/requests.ts';
import { Secrets } from '../../../src/drivers/exec/secrets.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { Commands } from '../commands.ts';

/** What a program makes of a request. */
type Answers = (request: Request, signal: AbortSignal) => Promise<unknown>;

interface Parts {
  process: ServerProcess;
  clock: Clock;
  commands: Commands;
  timeoutMs: number;
  answers: Answers;
  /** The highest fence of each resource, as programs have noted it under a lock. */
  fences: Map<string, number>;
}

const CONCURRENCY = 100;
const AGAIN_AFTER_MS = 1_000;

/** A driver's program in memory, which is started again whenever it ends. What it has begun goes on after its end. */
export class ProgramChannel implements Channel {
  readonly secrets = new Secrets([]);
  readonly isSerial = false;
  readonly #parts: Parts;
  #requests: Requests | undefined;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#start();
  }

  async open(): Promise<void> {}

  ask(method: Method, args: object, limits?: Limits): Promise<unknown> {
    if (this.#requests === undefined) return Promise.reject(new NotSent('the driver is not running'));
    return this.#requests.ask(method, args, undefined, limits);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#requests?.end('was closed');
    this.#requests = undefined;
  }

  #start(): void {
    const { clock, timeoutMs } = this.#parts;
    const underWay = new Map<string, AbortController>();
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const requests = new Requests({
      ...{ clock, timeoutMs, ended },
      write: (line) => {
        const request = JSON.parse(line) as Request & { request?: string };
        if (request.request === undefined) this.#send(request, requests, underWay);
        else underWay.get(request.request)?.abort();
        return true;
      },
      kill: (reason) => {
        this.#requests = undefined;
        for (const controller of underWay.values()) controller.abort();
        requests.end(reason);
        end();
        clock.setTimer(AGAIN_AFTER_MS, () => this.#isClosed || this.#start());
      },
    });
    requests.greeted(CONCURRENCY, true);
    this.#requests = requests;
  }

  #send(request: Request, requests: Requests, underWay: Map<string, AbortController>): void {
    const { process, commands, timeoutMs } = this.#parts;
    const { id, method } = request;
    const controller = new AbortController();
    underWay.set(id, controller);
    const about = [method, request['ref'], request['machine']].filter(Boolean).join(' ');
    const command = {
      host: { name: 'program', isSilent: false },
      line: about,
      isRead: !('cookie' in request),
      timeoutMs: 2 * timeoutMs,
      signal: controller.signal,
    };
    const answered = commands.send(process, command, () => this.#answer(request, controller.signal));
    answered
      .then(
        (result) => requests.take(id)?.resolve(result),
        (error: Error) => requests.take(id)?.reject(new AnswerLost(error.message, 'error')),
      )
      .finally(() => underWay.delete(id));
  }

  /** Begins nothing that is late, or whose claim is older than one that it has seen for the same resource. */
  async #answer(request: Request, signal: AbortSignal): Promise<unknown> {
    const { answers, fences } = this.#parts;
    const { ref, fence } = request as Request & { ref?: string; fence?: number };
    if (ref !== undefined && fence !== undefined) {
      const highest = fences.get(ref) ?? 0;
      if (fence < highest)
        return {
          ...{ outcome: 'failed', code: 'conflict', side_effect: 'none' },
          detail: `the claim ${fence} is older than ${highest}`,
        };
      fences.set(ref, fence);
    }
    return answers(request, signal);
  }
}
