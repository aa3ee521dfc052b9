import { type Client, createClient, type Pace } from '../http/http-client.ts';
import { PATIENCE_MS } from '../time/until.ts';
import { fileOf } from './built-programs.ts';
import { BerthProcess, startServing, temporaryFolder } from './process.ts';
import type { Failpoint } from './serve-with-failpoint.ts';

const entry = fileOf('serve-with-failpoint');

/** `berth serve` as a process over many lives: each time it was killed it starts again on the same database. */
export class ServerLives implements AsyncDisposable {
  readonly config: string;
  /** Of the first life. */
  apiKey = '';
  readonly #folder = temporaryFolder();
  readonly #pace: Pace | undefined;
  readonly #env: Record<string, string>;
  #process: BerthProcess | undefined;
  #baseUrl = '';
  #client: Client | undefined;

  /** `writeConfig` puts a berth.yaml into the folder and returns its path. */
  constructor(writeConfig: (folder: string) => string, pace?: Pace, env: Record<string, string> = {}) {
    this.config = writeConfig(this.#folder.path);
    this.#pace = pace;
    this.#env = env;
  }

  get folder(): string {
    return this.#folder.path;
  }

  async start(): Promise<void> {
    const options = { entry, ipc: true, env: this.#env };
    const serving = await startServing(['--config', this.config], options);
    this.#process = serving;
    this.#baseUrl = serving.baseUrl;
    this.apiKey ||= serving.apiKey;
    this.#client = createClient(serving.baseUrl, this.apiKey, this.#pace);
  }

  /** One life to that moment, which may come before it serves anybody. */
  async liveUntil(failpoint: Failpoint): Promise<void> {
    const env = { ...this.#env, BERTH_TEST_FAILPOINT: JSON.stringify(failpoint) };
    this.#process = new BerthProcess(['serve', '--port', '0', '--json', '--config', this.config], {
      entry,
      env,
    });
    await this.died(failpoint);
  }

  get baseUrl(): string {
    return this.#baseUrl;
  }

  /** What it has written to its log in this life. */
  get log(): string {
    return this.#process?.stderr ?? '';
  }

  /** Of the present life. */
  get client(): Client {
    if (this.#client === undefined) throw new Error('the server was not started');
    return this.#client;
  }

  /** From now on the process kills itself at this moment. */
  async arm(failpoint: Failpoint): Promise<void> {
    const child = this.#process?.child;
    await new Promise((resolve) => {
      child?.once('message', resolve);
      child?.send(failpoint);
    });
  }

  /** Waits for the death that was prepared. */
  async died({ name }: Failpoint): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const within = this.#pace?.withinMs ?? PATIENCE_MS;
    const timer = setTimeout(() => reject(new Error(`${name} was not reached`)), within);
    const end = await Promise.race([this.#process?.ended, late]).finally(() => clearTimeout(timer));
    if (end?.signal !== 'SIGKILL') throw new Error(`it ended otherwise at ${name}: ${JSON.stringify(end)}`);
  }

  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#folder[Symbol.dispose]();
  }
}
