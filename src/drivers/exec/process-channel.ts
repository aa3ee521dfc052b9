import type { Timer } from '../../ports/clock.ts';
import type { Channel, ChannelSetting, Limits } from './channel.ts';
import { messageOf, NotSent } from './errors.ts';
import type { Method } from './protocol/messages.ts';
import { Run } from './run.ts';
import type { Secrets } from './secrets.ts';

export interface ProgramOptions extends ChannelSetting {
  command: readonly string[];
  env: Readonly<Record<string, string>>;
  secrets: Secrets;
  stopTimeoutMs: number;
}

const FIRST_BACKOFF_MS = 1_000;
const LAST_BACKOFF_MS = 60_000;
/** A run of at least this time resets the backoff. */
const GOOD_RUN_MS = 60_000;

export class ProcessChannel implements Channel {
  readonly #options: ProgramOptions;
  #run: Run | undefined;
  #problem = 'the driver was not started';
  #isGreeted = false;
  #isClosed = false;
  #backoffMs = FIRST_BACKOFF_MS;
  #restart: Timer | undefined;
  /** Runs with processes that have not ended. */
  readonly #ending = new Set<Promise<unknown>>();

  constructor(options: ProgramOptions) {
    this.#options = options;
  }

  async open(): Promise<void> {
    const run = this.#start();
    try {
      await this.#greet(run);
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#supervise(run);
  }

  ask(method: Method, args: object, limits?: Limits): Promise<unknown> {
    if (this.#run === undefined || !this.#isGreeted) return Promise.reject(new NotSent(this.#problem));
    return this.#run.ask(method, args, undefined, limits);
  }

  get secrets(): Secrets {
    return this.#options.secrets;
  }

  get isSerial(): boolean {
    return this.#options.greeter.info.concurrency === 1;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#restart?.cancel();
    await this.#run?.close();
    await Promise.all(this.#ending);
  }

  #start(): Run {
    const run = new Run(this.#options);
    this.#run = run;
    this.#problem = 'the driver is starting';
    const ending = run.ended.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return run;
  }

  /** @throws {Error} if its answer is missing or invalid */
  async #greet(run: Run): Promise<void> {
    const { greeter, log, startTimeoutMs } = this.#options;
    const { concurrency, capabilities } = greeter.greet(await run.ask('info', {}, startTimeoutMs));
    run.greeted(concurrency, capabilities.cancel);
    this.#isGreeted = true;
    const { name, version } = greeter.info;
    log.info({ driver: name, version, driver_pid: run.pid }, 'the driver answers');
  }

  #supervise(run: Run): void {
    const { clock } = this.#options;
    const startedAt = clock.now();
    void run.unusable.then((end) => {
      const reason = `the driver ${end}`;
      this.#isGreeted = false;
      if (this.#isClosed) return;
      if (clock.now() - startedAt >= GOOD_RUN_MS) this.#backoffMs = FIRST_BACKOFF_MS;
      void run.ended.then(() => this.#later(reason));
      this.#problem = reason;
    });
  }

  #later(reason: string): void {
    if (this.#isClosed) return;
    const { clock, log } = this.#options;
    const waitMs = this.#backoffMs;
    this.#backoffMs = Math.min(LAST_BACKOFF_MS, 2 * waitMs);
    this.#problem = reason;
    log.error(
      { again_in_s: waitMs / 1000 },
      `${reason}: Berth starts no work and changes no state until it answers again`,
    );
    this.#restart = clock.setTimer(waitMs, () => void this.#again());
  }

  async #again(): Promise<void> {
    const run = this.#start();
    try {
      await this.#greet(run);
      this.#supervise(run);
    } catch (error) {
      run.kill('cannot be used');
      void run.ended.then(() => this.#later(messageOf(error)));
    }
  }
}
