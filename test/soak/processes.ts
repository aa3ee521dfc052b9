import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileOf, type Program } from '../support/processes/built-programs.ts';
import { BerthProcess } from '../support/processes/process.ts';

/** A `berth` over many lives, with one log for all of them. */
export class Lives {
  readonly name: string;
  readonly #args: () => readonly string[];
  readonly #log: string;
  readonly #env: Record<string, string>;
  readonly #program: Program;
  #process: BerthProcess | undefined;

  constructor(
    name: string,
    folder: string,
    args: () => readonly string[],
    env: Record<string, string>,
    program: Program = 'main',
  ) {
    this.name = name;
    this.#args = args;
    this.#env = env;
    this.#program = program;
    this.#log = join(folder, `${name}.log`);
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Starts it; what it prints when it is ready. */
  async start(): Promise<Record<string, string>> {
    const started = new BerthProcess(this.#args(), { env: this.#env, entry: fileOf(this.#program) });
    this.#process = started;
    void started.ended.then(({ stderr, code, signal }) =>
      appendFileSync(this.#log, `${stderr}{"msg":"ended","code":${code},"signal":"${signal}"}\n`),
    );
    return JSON.parse(await started.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]));
  }

  /** Sends a signal and waits for the end; how it ended. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const ended = await this.#process?.end(signal);
    this.#process = undefined;
    return ended?.code ?? null;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.child.kill(signal);
  }
}
