import { cpSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'vitest';
import { generateKeyPair, type KeyPair, ssh } from '../support/processes/openssh.ts';
import { BerthProcess, runBerth } from '../support/processes/process.ts';
import { writeTimes } from '../support/processes/quick-times.ts';
import { ServerLives } from '../support/processes/server-lives.ts';

/** Emulated guests take both cores, and who looks all the time takes them from these. */
const PACE = { everyMs: 250, withinMs: 1_200_000 };

/** An instance as the API shows it. */
export type Machine = Record<string, unknown>;

/** `berth serve` on a real platform, a process of its own over many lives on one database; and who buys there. */
export class LabServer extends ServerLives {
  readonly #sold: ConstructorParameters<typeof LabServer>;
  #keys: [KeyPair, KeyPair] | undefined;

  constructor(catalog: object, platform: object, offer: object) {
    super((folder) => {
      writeFileSync(join(folder, 'catalog.yaml'), JSON.stringify(catalog));
      const config = {
        database: 'sqlite:berth.db',
        catalog: 'catalog.yaml',
        platform,
        rate_limits: false,
        log_level: 'warn',
      };
      const file = join(folder, 'berth.yaml');
      writeFileSync(file, JSON.stringify(config));
      writeTimes(file, { reconcile: { watchIntervalMs: 2_000, probeIntervalMs: 500 } });
      return file;
    }, PACE);
    this.#sold = [catalog, platform, offer];
  }

  override async start(): Promise<void> {
    await super.start();
    this.#keys ??= [
      await generateKeyPair(this.folder, 'ed25519'),
      await generateKeyPair(this.folder, 'ecdsa'),
    ];
  }

  /** Starts another server with a copy of its database and its files. */
  async startCopy(): Promise<LabServer> {
    const copy = new LabServer(...this.#sold);
    [copy.apiKey, copy.#keys] = [this.apiKey, this.#keys];
    const filter = (path: string): boolean => !basename(path).startsWith('berth.db');
    cpSync(this.folder, copy.folder, { recursive: true, filter });
    const backup = await runBerth(['backup', join(copy.folder, 'berth.db'), '--config', this.config]);
    if (backup.code !== 0) throw new Error(backup.stderr);
    await copy.start();
    return copy;
  }

  /** Of who buys: both are injected. */
  get keys(): [KeyPair, KeyPair] {
    if (this.#keys === undefined) throw new Error('the server was not started');
    return this.#keys;
  }

  request(more: object = {}): object {
    return { ...this.#sold[2], ssh_keys: this.keys.map(({ publicKey }) => publicKey), ...more };
  }

  /** The path of a new instance. */
  async create(more: object = {}): Promise<string> {
    const { status, body } = await this.client.request('POST', '/instances', { body: this.request(more) });
    if (status !== 201) throw new Error(`the create was answered ${status}: ${JSON.stringify(body)}`);
    return `/instances/${body['id']}`;
  }

  online(path: string): Promise<Machine> {
    return this.client.waitFor(path, 'ONLINE');
  }

  login(machine: Machine, command: string, key = this.keys[0]): ReturnType<typeof ssh> {
    return ssh(machine, key, command);
  }

  /** Expects CONFORMANT of `berth conformance` with a second key, at level full unless the flags name another. */
  async expectConformant(...flags: string[]): Promise<void> {
    const created = await runBerth(['keys', 'create', '--json', '--config', this.config]);
    const { api_key: second } = JSON.parse(created.stdout) as { api_key: string };
    // Beside emulated guests it takes longer than a command may.
    await using suite = new BerthProcess(
      [
        ...['conformance', this.baseUrl, '--level', 'full', '--max-cost', '40', '--yes'],
        ...['--state-dir', `${this.folder}/state`, '--allow-private', ...flags],
      ],
      { cwd: this.folder, env: { BERTH_API_KEY: this.apiKey, BERTH_SECOND_API_KEY: second } },
    );
    const { code, stdout, stderr } = await suite.ended;
    // The report first: it begins with what failed.
    expect(stdout, `${stdout}\n${stderr}`).toMatch(/^CONFORMANT: /m);
    expect(code).toBe(0);
  }

  async destroy(path: string): Promise<void> {
    await this.client.request('DELETE', path);
    await this.client.waitFor(path, 'GONE');
  }
}

/** The owner ref, and so the platform's name, of an instance or a volume. */
export function nameOf(path: string): string {
  return `berth-${path.split('/').at(-1)}`;
}
