import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATIENCE_MS } from '../clocks/patience.ts';
import { type Client, type ClientReply, createClient, until } from '../http/http-client.ts';
import { faultsOf, type Ledger, readLedger } from '../ledger.ts';
import {
  type FastConfig,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from './process.ts';
import type { Failpoint } from './serve-with-failpoint.ts';

const entry = fileURLToPath(new URL('./serve-with-failpoint.ts', import.meta.url));

/** One server over many lives: each time it was killed it starts again on the same database. */
export class MortalServer {
  readonly #folder = temporaryFolder();
  readonly #config: string;
  #process: ServingProcess | undefined;
  #client: Client | undefined;
  #apiKey = '';

  constructor(config: FastConfig = {}) {
    this.#config = writeFastConfig(this.#folder.path, config);
  }

  async start(): Promise<void> {
    this.#process = await startServing(['--config', this.#config], { entry, ipc: true });
    this.#apiKey ||= this.#process.apiKey;
    this.#client = createClient(this.#process.baseUrl, this.#apiKey);
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
    const timer = setTimeout(() => reject(new Error(`${name} was not reached`)), PATIENCE_MS);
    const end = await Promise.race([this.#process?.ended, late]).finally(() => clearTimeout(timer));
    if (end?.signal !== 'SIGKILL') throw new Error(`it ended otherwise at ${name}: ${JSON.stringify(end)}`);
  }

  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  /** Sends a request until there is a reply, as a client does whose server went away. */
  async insist(send: (client: Client) => Promise<ClientReply>): Promise<ClientReply> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const reply = await send(this.client).catch(() => undefined);
      if (reply !== undefined && reply.status !== 503) return reply;
      if (Date.now() > deadline) throw new Error('there is no reply');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  ledger(): Ledger {
    return readLedger(join(this.#folder.path, 'data', 'berth.db'));
  }

  /** Waits until nothing is under way; then each row has its machine and its claim, and nothing is left over. */
  async expectOrder(): Promise<void> {
    await until(
      async () => this.ledger().work.length === 0,
      () => `work is still open: ${JSON.stringify(this.ledger())}`,
    );
    const faults = faultsOf(this.ledger());
    if (faults.length > 0) throw new Error(faults.join('\n'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#folder[Symbol.dispose]();
  }
}

/** Reads an instance over and over, through deaths and restarts, and remembers if it ever read 404. */
export function watchFor404(server: MortalServer, path: string): { stop(): Promise<number> } {
  let isOver = false;
  let count = 0;
  const watching = (async () => {
    while (!isOver) {
      const reply = await server.client.request('GET', path).catch(() => undefined);
      if (reply?.status === 404) count++;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      return count;
    },
  };
}
