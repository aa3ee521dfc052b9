import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { isNestedTooDeeply, parseJson } from '../../contract/parse-json.ts';
import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { type Limits, MAX_ANSWER_BYTES } from './channel.ts';
import { DriverLog } from './driver-log.ts';
import { AnswerLost, NotSent, quoted } from './errors.ts';
import { LineReader } from './line-reader.ts';
import { type Answer, answerSchema, type Method } from './protocol/messages.ts';
import { MAX_TEXT } from './protocol/objects.ts';
import { type Request, Requests } from './requests.ts';
import type { Secrets } from './secrets.ts';

export interface RunOptions {
  command: readonly string[];
  env: Readonly<Record<string, string>>;
  secrets: Secrets;
  timeoutMs: number;
  stopTimeoutMs: number;
  clock: Clock;
  log: Log;
}

const MAX_GARBAGE = 100;
const MAX_LOG_LINE_BYTES = 64 * 1024;
/** Logged for a program that does not end after its standard input is closed. */
export const STDIN_IGNORED = 'the driver did not exit after its standard input was closed: sending SIGTERM';
/** Whether a log message reports an invalid or late answer of a driver. */
export const isComplaint = (sentence: string): boolean =>
  /^the driver (wrote |answered (a request that is unknown|.* too late))/.test(sentence);
/** Time to read output that is still in the pipes of a program that ended. */
const DRAIN_MS = 500;
/** How often to check, every 10 ms, whether a killed process group has ended. */
const GONE_CHECKS = 50;

/**
 * One run of a driver's program. Requests go to standard input, no more at once than it takes; answers come from
 * standard output in any order; standard error goes to the log. The program has its own process group, which ends
 * with it.
 */
export class Run {
  static readonly #running = new Set<Run>();
  // If this process exits before its drivers have ended, it kills them.
  static {
    process.on('exit', () => {
      for (const run of Run.#running) run.#signal('SIGKILL');
    });
  }
  /** Resolves with the reason when all its processes have ended. */
  readonly ended: Promise<string>;
  /** Resolves earlier, when it accepts no more requests. */
  readonly unusable: Promise<string>;
  readonly #options: RunOptions;
  readonly #child: ChildProcess;
  readonly #requests: Requests;
  readonly #output: DriverLog;
  readonly #warnings: DriverLog;
  readonly #end = Promise.withResolvers<string>();
  readonly #unusable = Promise.withResolvers<string>();
  #garbage = 0;
  #lastWords = '';
  #reason: string | undefined;
  #killing: Timer | undefined;
  #suspecting: Timer | undefined;
  #isKilled = false;

  constructor(options: RunOptions) {
    this.#options = options;
    const { clock, log, secrets } = options;
    const [program = '', ...args] = options.command;
    this.#child = spawn(program, args, { env: options.env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    const pid = this.#child.pid;
    this.#output = new DriverLog(clock, secrets, (line, leftOut) =>
      log.info({ driver_pid: pid, line, ...(leftOut > 0 && { left_out: leftOut }) }, 'the driver writes'),
    );
    this.#warnings = new DriverLog(clock, secrets, (line, leftOut) =>
      log.warn({ driver_pid: pid, ...(leftOut > 0 && { left_out: leftOut }) }, line),
    );
    this.ended = this.#end.promise;
    this.unusable = this.#unusable.promise;
    this.#requests = new Requests({
      clock,
      timeoutMs: options.timeoutMs,
      write: (line) => this.#child.stdin?.write(line) !== false,
      kill: (reason) => this.kill(reason),
      ended: this.ended,
    });
    this.#listen();
    Run.#running.add(this);
    void this.ended.then(() => Run.#running.delete(this));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** @throws {NotSent | AnswerLost} */
  ask(method: Method, args: object, timeoutMs?: number, limits?: Limits): Promise<unknown> {
    if (this.#reason !== undefined) return Promise.reject(new NotSent(`the driver ${this.#reason}`));
    return this.#requests.ask(method, args, timeoutMs, limits);
  }

  /** Sets how many requests the program takes at once, and whether it can cancel them. */
  greeted(concurrency: number, canCancel: boolean): void {
    this.#requests.greeted(concurrency, canCancel);
  }

  /** Closes standard input, which asks the program to end. Kills it after the stop timeout. */
  close(): Promise<string> {
    this.#giveUp('was closed');
    this.#child.stdin?.end();
    this.#killing ??= this.#options.clock.setTimer(this.#options.stopTimeoutMs, () => {
      this.#options.log.warn({ driver_pid: this.pid }, STDIN_IGNORED);
      this.#terminate();
    });
    return this.ended;
  }

  /** Marks the run as unusable, rejects the requests under way, and ends the process group. */
  kill(reason: string): void {
    if (this.#reason !== undefined) return;
    this.#giveUp(reason);
    this.#terminate();
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#child;
    const answers = new LineReader(MAX_ANSWER_BYTES, {
      onLine: (line) => this.#read(line),
      onTooLong: (start) =>
        this.#complain(`wrote a line of more than ${MAX_ANSWER_BYTES >> 20} MiB: ${quoted(start)}`),
    });
    const words = new LineReader(MAX_LOG_LINE_BYTES, {
      onLine: (line) => this.#logLine(line),
      onTooLong: (start) => this.#logLine(start),
    });
    stdout?.on('data', (chunk: Buffer) => answers.push(chunk));
    stdout?.on('end', () => {
      answers.end();
      this.#suspect('closed its standard output');
    });
    stderr?.on('data', (chunk: Buffer) => words.push(chunk));
    stderr?.on('end', () => words.end());
    stdin?.on('error', () => this.#suspect('closed its standard input'));
    stdin?.on('drain', () => this.#requests.resume());
    for (const stream of [stdout, stderr]) stream?.on('error', () => undefined);
    this.#child.once('error', (error: NodeJS.ErrnoException) => {
      if (this.#child.pid !== undefined) return;
      this.#giveUp(`cannot be started (${error.code ?? error.message})`);
      this.#end.resolve(this.#reason ?? '');
    });
    this.#child.once('exit', (code, signal) => void this.#exited(code, signal));
  }

  /** Kills the program unless its exit follows soon: the end of a pipe may be noticed before the exit. */
  #suspect(reason: string): void {
    this.#suspecting ??= this.#options.clock.setTimer(DRAIN_MS, () => this.kill(reason));
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    // The clock's timers do not keep the process alive, and this function must finish.
    const held = setInterval(() => undefined, 60_000);
    // Output written before the exit may still contain answers.
    await this.#drained();
    this.#output.end(this.#lastWords);
    const words =
      this.#lastWords === '' ? '' : `; its last words: ${quoted(this.#output.clean(this.#lastWords))}`;
    this.#giveUp(`${signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`}${words}`);
    this.#killing?.cancel();
    this.#suspecting?.cancel();
    if (!this.#isKilled) await this.#endGroup();
    await this.#groupGone();
    clearInterval(held);
    this.#end.resolve(this.#reason ?? '');
  }

  async #drained(): Promise<void> {
    const { stdin, stdout, stderr } = this.#child;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = this.#options.clock.setTimer(DRAIN_MS, () => resolve(false));
    this.#child.once('close', () => resolve(true));
    if (!(await promise))
      this.#options.log.warn(
        { driver_pid: this.pid },
        'the driver exited, but a child process still holds its standard output; Berth no longer reads it',
      );
    timer.cancel();
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
  }

  /** Ends processes that the driver started in its process group and left running. */
  async #endGroup(): Promise<void> {
    if (!this.#signal('SIGTERM')) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#options.clock.setTimer(this.#options.stopTimeoutMs, resolve);
    await promise;
    if (this.#signal('SIGKILL'))
      this.#options.log.warn({ driver_pid: this.pid }, 'killed child processes that the driver left running');
  }

  /** Waits for killed processes to end. Zombies that init does not reap stay in the group, so the wait is limited. */
  async #groupGone(): Promise<void> {
    for (let checks = 0; checks < GONE_CHECKS && this.#signal(0); checks++) await sleep(10);
  }

  #terminate(): void {
    this.#signal('SIGTERM');
    this.#killing?.cancel();
    this.#killing = this.#options.clock.setTimer(this.#options.stopTimeoutMs, () => {
      this.#options.log.warn(
        { driver_pid: this.pid },
        'the driver did not exit after SIGTERM: sending SIGKILL',
      );
      this.#isKilled = true;
      this.#signal('SIGKILL');
    });
  }

  /** Signals the process group. Returns false if it has no process. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      return this.pid !== undefined && process.kill(0 - this.pid, signal);
    } catch {
      return false;
    }
  }

  #giveUp(reason: string): void {
    this.#reason ??= reason;
    this.#unusable.resolve(this.#reason);
    this.#requests.end(this.#reason);
  }

  #read(line: string): void {
    // All requests of this run were rejected already.
    if (this.#reason !== undefined) return;
    const answer = parseAnswer(line);
    const request = answer && this.#requests.take(answer.id);
    if (answer === undefined || request === undefined) {
      const problem =
        answer === undefined
          ? `wrote an invalid line (${whyNoAnswer(line)})`
          : 'answered a request that is unknown or already answered';
      const sentence = `${problem}: ${quoted(this.#output.clean(line))}`;
      this.#requests.garbage = `; instead it ${sentence}`;
      this.#complain(sentence);
    } else if (request.givenUpBy === 'time') this.#warnOfLate(request);
    else if (request.givenUpBy === undefined) this.#settle(request, answer);
  }

  #warnOfLate({ method, sentAt }: Request): void {
    const seconds = ((this.#options.clock.now() - sentAt) / 1000).toFixed(1);
    this.#warnings.write(
      `the driver answered ${method} ${seconds} s after the request: too late, the answer is dropped`,
    );
  }

  #settle({ method, resolve, reject }: Request, answer: Answer): void {
    if ('error' in answer)
      reject(
        new AnswerLost(
          `the driver reported an error for ${method}: ${this.#output.clean(answer.error)}`,
          'error',
        ),
      );
    else resolve(answer.result);
  }

  #complain(problem: string): void {
    this.#warnings.write(`the driver ${problem}`);
    if (++this.#garbage >= MAX_GARBAGE) this.kill(`wrote ${MAX_GARBAGE} lines that are not answers`);
  }

  #logLine(line: string): void {
    this.#lastWords = line;
    this.#output.write(line);
  }
}

/** Why a line is not an answer, for the author of the driver. */
function whyNoAnswer(line: string): string {
  if (isNestedTooDeeply(line)) return 'it is nested too deeply';
  const value = parseJson(line);
  if (value === undefined) return 'not JSON: log text belongs on standard error';
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'it is not an object';
  const { id } = value as { id?: unknown };
  if (typeof id !== 'string')
    return `its id is ${typeof id === 'number' ? id : 'not a string'}; expected the id of the request`;
  return `it has neither a result nor an error of at most ${MAX_TEXT} characters`;
}

function parseAnswer(line: string): Answer | undefined {
  return answerSchema.safeParse(parseJson(line)).data as Answer | undefined;
}
