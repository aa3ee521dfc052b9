import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATIENCE_MS } from '../../support/clocks/patience.ts';
import { type Client, createClient } from '../../support/http/http-client.ts';
import { type ServingProcess, startServing, temporaryFolder } from '../../support/processes/process.ts';
import type { Failpoint } from '../../support/processes/serve-with-failpoint.ts';
import { type Cluster, image } from './cluster.ts';

const entry = fileURLToPath(new URL('../../support/processes/serve-with-failpoint.ts', import.meta.url));

export const region = 'eu-lab';
/** Six of them fit on the cluster, by what the catalog says. */
export const offer = { configuration_id: 'small', region };
const UNITS = 6;

const catalog = {
  regions: {
    [region]: {
      name: 'Lab',
      country_code: 'DE',
      datacenter: 'lab1',
      volume_types: [
        { name: 'btrfs', price_per_gb_hour: 0.0001, min_size_gb: 1, max_size_gb: 40, shareable: false },
      ],
    },
  },
  offers: [
    {
      id: offer.configuration_id,
      name: 'Small',
      instance_type: 'DEDICATED',
      vcpus: 1,
      memory_gb: 0.25,
      storage_gb: 1,
      price_per_hour: 0.01,
      os_options: [image.name],
      supports_cloud_init: true,
      capacity: { [region]: UNITS },
      machine: { forward_ports: [8080] },
    },
  ],
};

/** `berth serve` on the cluster, a process of its own over many lives on one database. */
export class LabServer {
  readonly #folder = temporaryFolder();
  #process: ServingProcess | undefined;
  #client: Client | undefined;
  readonly #config: string;
  apiKey = '';

  constructor(cluster: Cluster) {
    const at = (name: string): string => join(this.#folder.path, name);
    writeFileSync(at('catalog.yaml'), JSON.stringify(catalog));
    const config = {
      database: 'sqlite:berth.db',
      catalog: 'catalog.yaml',
      platform: cluster.platform({ overcommit: { cpu: 8, disk: 40 } }),
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

  async create(more: object): Promise<string> {
    const { status, body } = await this.client.request('POST', '/instances', { body: { ...offer, ...more } });
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

/** The owner ref, and so Incus' name, of an instance or a volume. */
export function nameOf(path: string): string {
  return `berth-${path.split('/').at(-1)}`;
}
