import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATIENCE_MS } from '../support/clocks/patience.ts';
import { type Client, createClient } from '../support/http/http-client.ts';
import { type ServingProcess, startServing, temporaryFolder } from '../support/processes/process.ts';
import type { Failpoint } from '../support/processes/serve-with-failpoint.ts';

const entry = fileURLToPath(new URL('../support/processes/serve-with-failpoint.ts', import.meta.url));

/** `berth serve` on a real platform, a process of its own over many lives on one database. */
export class LabServer {
  readonly #folder = temporaryFolder();
  #process: ServingProcess | undefined;
  #client: Client | undefined;
  readonly #config: string;
  apiKey = '';

  constructor(catalog: object, platform: object) {
    const at = (name: string): string => join(this.#folder.path, name);
    writeFileSync(at('catalog.yaml'), JSON.stringify(catalog));
    const config = {
      database: 'sqlite:berth.db',
      catalog: 'catalog.yaml',
      platform,
      reconcile: { watch_interval_s: 2, ssh_probe_interval_s: 0.5, lease_s: 30 },
      rate_limits: { enabled: false },
      log: { level: 'warn' },
    };
    this.#config = at('berth.yaml');
    writeFileSync(this.#config, JSON.stringify(config));
  }

  get folder(): string {
    return this.#folder.path;
  }

  get config(): string {
    return this.#config;
  }

  async start(): Promise<void> {
    this.#process = await startServing(['--config', this.#config], { entry, ipc: true });
    this.apiKey ||= this.#process.apiKey;
    this.#client = createClient(this.#process.baseUrl, this.apiKey);
  }

  get baseUrl(): string {
    return this.#process?.baseUrl ?? '';
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

  /** From now on it kills itself at this moment. */
  async arm(failpoint: Failpoint): Promise<void> {
    const child = this.#process?.child;
    await new Promise((resolve) => {
      child?.once('message', resolve);
      child?.send(failpoint);
    });
  }

  /** Waits for the death that was prepared, and begins the next life. */
  async diedAndStart({ name }: Failpoint): Promise<void> {
    const end = await Promise.race([this.#process?.ended, late(name)]);
    if (end?.signal !== 'SIGKILL') throw new Error(`it ended otherwise at ${name}: ${JSON.stringify(end)}`);
    await this.start();
  }

  async create(request: object): Promise<string> {
    const { status, body } = await this.client.request('POST', '/instances', { body: request });
    if (status !== 201) throw new Error(`the create was answered ${status}: ${JSON.stringify(body)}`);
    return `/instances/${body['id']}`;
  }

  async destroy(path: string): Promise<void> {
    await this.client.request('DELETE', path);
    await this.client.waitFor(path, 'GONE');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.end('SIGKILL');
    this.#folder[Symbol.dispose]();
  }
}

async function late(name: string): Promise<never> {
  await sleep(PATIENCE_MS, undefined, { ref: false });
  throw new Error(`${name} was not reached`);
}

/** The owner ref, and so the platform's name, of an instance or a volume. */
export function nameOf(path: string): string {
  return `berth-${path.split('/').at(-1)}`;
}
