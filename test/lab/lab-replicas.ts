import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, type ClientReply, createClient } from '../support/http/http-client.ts';
import { generateKeyPair, type KeyPair, ssh } from '../support/processes/openssh.ts';
import { type ServingProcess, startServing, temporaryFolder } from '../support/processes/process.ts';
import { writeTimes } from '../support/processes/quick-times.ts';
import type { Machine } from './lab-server.ts';

const WITHIN_MS = 600_000;
const EVERY_MS = 250;

const ANSWER_WITHIN_MS = 15_000;

/** How one server reaches the platform. */
export interface Replica {
  platform: object;
  env?: Record<string, string>;
}

interface Server {
  config: string;
  env: Record<string, string>;
  process: ServingProcess | undefined;
  isPaused: boolean;
}

/** Servers on one database and one platform, each a process that a test kills or pauses. Whichever is awake is asked. */
export class LabReplicas implements AsyncDisposable {
  readonly #folder = temporaryFolder();
  readonly #offer: object;
  readonly #servers: Server[];
  #apiKey = '';
  #keys: KeyPair[] = [];

  /** `leaseS`: so long a server that is paused keeps its work from the others. A call may take a quarter of it. */
  constructor(
    catalog: object,
    offer: object,
    { database, leaseS, replicas }: { database: string; leaseS: number; replicas: readonly Replica[] },
  ) {
    this.#offer = offer;
    writeFileSync(join(this.#folder.path, 'catalog.yaml'), JSON.stringify(catalog));
    this.#servers = replicas.map(({ platform, env = {} }, index) => {
      const config = join(this.#folder.path, `berth-${index}.yaml`);
      const settings = {
        database,
        catalog: 'catalog.yaml',
        platform,
        rate_limits: false,
        log_level: 'warn',
      };
      writeFileSync(config, JSON.stringify(settings));
      const leaseMs = leaseS * 1_000;
      writeTimes(config, { reconcile: { watchIntervalMs: 2_000, probeIntervalMs: 500, leaseMs } });
      return { config, env, process: undefined, isPaused: false };
    });
  }

  async start(): Promise<void> {
    this.#keys = [await generateKeyPair(this.#folder.path, 'ed25519')];
    for (const server of this.#servers) await this.#start(server);
  }

  async #start(server: Server): Promise<void> {
    const { config, env } = server;
    server.process = await startServing(['--config', config], { env });
    this.#apiKey ||= server.process.apiKey;
  }

  /** Whether that process runs, paused or not. */
  has(pid: number): boolean {
    return this.#servers.some((server) => server.process?.child.pid === pid);
  }

  pidOf(index: number): number | undefined {
    return this.#servers[index]?.process?.child.pid;
  }

  /** Kills it, and starts another in its place. */
  async replace(pid: number): Promise<void> {
    const server = this.#of(pid);
    const { process } = server;
    server.process = undefined;
    await process?.end('SIGKILL');
    await this.#start(server);
  }

  pause(pid: number): void {
    const server = this.#of(pid);
    server.isPaused = true;
    server.process?.child.kill('SIGSTOP');
  }

  resume(pid: number): void {
    const server = this.#of(pid);
    server.process?.child.kill('SIGCONT');
    server.isPaused = false;
  }

  #of(pid: number): Server {
    const server = this.#servers.find((one) => one.process?.child.pid === pid);
    if (server === undefined) throw new Error(`no server has the process ${pid}`);
    return server;
  }

  get log(): string {
    return this.#servers.map(({ process }) => process?.stderr ?? '').join('');
  }

  /** Sent again, to another, where the server died or was paused before it answered. */
  async request(method: string, path: string, body?: object): Promise<ClientReply> {
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const deadline = Date.now() + WITHIN_MS;
    for (;;) {
      const client = this.#client();
      try {
        if (client !== undefined) return await inTime(client.request(method, path, { body, headers }));
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
      await sleep(EVERY_MS);
    }
  }

  #client(): Client | undefined {
    const awake = this.#servers.find(({ process, isPaused }) => process !== undefined && !isPaused);
    return awake?.process && createClient(awake.process.baseUrl, this.#apiKey);
  }

  /** The path of a new resource. @throws {Error} unless it was accepted */
  async create(path: '/instances' | '/volumes', more: object): Promise<string> {
    const offer = { ...this.#offer, ssh_keys: this.#keys.map(({ publicKey }) => publicKey) };
    const { status, body } = await this.request(
      'POST',
      path,
      path === '/instances' ? { ...offer, ...more } : more,
    );
    if (status !== 201) throw new Error(`the create was answered ${status}: ${JSON.stringify(body)}`);
    return `${path}/${body['id']}`;
  }

  async waitFor(path: string, state: string, field = 'status'): Promise<Machine> {
    const deadline = Date.now() + WITHIN_MS;
    for (;;) {
      const { status, body } = await this.request('GET', path);
      const found = status === 404 ? 'GONE' : String(body[field] ?? status);
      if (found === state) return body;
      if (Date.now() > deadline)
        throw new Error(`${path} reads ${found}, not ${state}: ${JSON.stringify(body)}\n${this.log}`);
      await sleep(EVERY_MS);
    }
  }

  login(machine: Machine, command: string): ReturnType<typeof ssh> {
    const [key] = this.#keys;
    if (key === undefined) throw new Error('the servers were not started');
    return ssh(machine, key, command);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map(({ process }) => process?.end('SIGKILL')));
    this.#folder[Symbol.dispose]();
  }
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('the server does not answer')), ANSWER_WITHIN_MS);
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
