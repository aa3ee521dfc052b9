import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SimulatorTruth } from '../../src/drivers/simulator/platform/simulator.ts';
import type { FaultSettings } from '../../src/drivers/simulator/remote/faults.ts';
import { BerthProcess } from '../support/processes/process.ts';

const SECRETS = {
  BERTH_SIMULATOR_TOKEN: 'the-token-of-this-soak',
  BERTH_API_KEY: 'the-api-key-of-this-soak',
};

/** A `berth` over many lives, with one log for all of them. */
export class Lives {
  readonly name: string;
  readonly #args: () => readonly string[];
  readonly #log: string;
  readonly #env: Record<string, string>;
  #process: BerthProcess | undefined;

  constructor(
    name: string,
    folder: string,
    args: () => readonly string[],
    env: Record<string, string> = SECRETS,
  ) {
    this.name = name;
    this.#args = args;
    this.#env = env;
    this.#log = join(folder, `${name}.log`);
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Starts it; what it prints when it is ready. */
  async start(): Promise<Record<string, string>> {
    const started = new BerthProcess(this.#args(), { env: this.#env });
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

/** One `berth serve` of several. */
export class Replica extends Lives {
  /** Of its present or last life: clients find out by themselves that it is down. Undefined before the first. */
  baseUrl: string | undefined;

  constructor(name: string, folder: string, config: string, database: string) {
    super(name, folder, () => ['serve', '--json', '--port', '0', '--config', config, '--database', database]);
  }

  override async start(): Promise<Record<string, string>> {
    const ready = await super.start();
    this.baseUrl = ready['base_url'];
    return ready;
  }
}

export const API_KEY = SECRETS.BERTH_API_KEY;

/** The `berth simulator`, and its control. */
export class Platform extends Lives {
  readonly #port: number;

  constructor(folder: string, config: string, port: number) {
    const state = join(folder, 'platform.db');
    super('simulator', folder, () => [
      ...['simulator', '--json', '--port', String(port)],
      ...['--config', config, '--state', state],
    ]);
    this.#port = port;
  }

  truth(): Promise<SimulatorTruth> {
    return this.#control('GET', 'truth') as Promise<SimulatorTruth>;
  }

  async setFaults(settings: Partial<FaultSettings>): Promise<void> {
    await this.#control('PUT', 'faults', { seed: 'none', rates: {}, ...settings });
  }

  /** How often each fault was injected since the simulator's last start. */
  faultCounts(): Promise<Record<string, number>> {
    return this.#control('GET', 'faults') as Promise<Record<string, number>>;
  }

  /** @throws while it does not run. */
  async #control(method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/control/${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${SECRETS.BERTH_SIMULATOR_TOKEN}`,
        'Content-Type': 'application/json',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
}
