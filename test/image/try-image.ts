import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// Uses the image as its users would, with the command line, user and health check that the Dockerfile gives it:
// `try-image.ts STORAGE IMAGE`, in a network of its own (see run.sh). It throws at the first thing that is wrong.

const [storage = '', image = ''] = process.argv.slice(2);
const BASE_URL = 'http://127.0.0.1:8080/v1';
const MARKETPLACE_URL = 'http://127.0.0.1:8100';
const DEADLINE_MS = 60_000;
/** Sixteen times the mean time between two reads: that none comes within it has a chance of 1 in 9 million. */
const READ_WITHIN_MS = 16 * 36_000;

const folder = mkdtempSync(join(tmpdir(), 'berth-image-'));
// The image's user reads what is mounted from it.
chmodSync(folder, 0o755);
const storageFlags = ['--root', join(storage, 'images'), '--runroot', join(storage, 'run')];
const buildahArgs = (...args: string[]): string[] => [...storageFlags, ...args];
const run = (program: string, args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const buildah = (...args: string[]): string => run('buildah', buildahArgs(...args)).trim();

interface ImageConfig {
  User: string;
  Entrypoint: string[];
  Cmd: string[];
  Healthcheck: { Test: string[] };
}

const config: ImageConfig = JSON.parse(buildah('inspect', '--type', 'image', image)).Docker.config;
const container = buildah('from', '--pull-never', image);

/** The command line of a process in the container, as `docker run` or `docker exec` would start it. */
function inContainer(command: readonly string[], variables: Record<string, string> = {}): string[] {
  const env = Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const place = ['--isolation', 'chroot', '--network', 'host', '--volume', `${folder}:/config:ro`];
  return buildahArgs('run', ...place, ...env, container, '--', ...command);
}

class Server {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  output = '';

  constructor(args: readonly string[], variables: Record<string, string> = {}) {
    this.#child = spawn('buildah', inContainer([...config.Entrypoint, ...args], variables), {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => {
        this.output += text;
      });
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
    void this.#ended.then((code) => {
      if (code !== 0) process.stderr.write(this.output);
    });
  }

  /** What `find` returns of the output, as soon as it returns something. */
  async waitFor(what: string, find: (output: string) => string | undefined): Promise<string> {
    return waitUntil(what, async () => {
      if (this.#child.exitCode !== null) throw new Error(`the process ended before ${what}`);
      return find(this.output);
    });
  }

  /** Stops the program with SIGTERM, as `docker stop` does, and expects that it ends well. */
  async stop(command: string): Promise<void> {
    process.kill(serverProcess(command).pid, 'SIGTERM');
    const code = await this.#ended;
    if (code !== 0) throw new Error(`\`berth ${command}\` ended with ${code} after SIGTERM`);
  }
}

/** The process that runs a command of the image, and its user. */
function serverProcess(command: string): { pid: number; uid: number } {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const [program = '', ...args] = readProcess(pid, 'cmdline').split('\0');
    const isIt = [basename(program), ...args].join(' ').startsWith([...config.Entrypoint, command].join(' '));
    const uid = /^Uid:\s+(\d+)/m.exec(readProcess(pid, 'status'))?.[1];
    if (isIt && uid !== undefined) return { pid: Number(pid), uid: Number(uid) };
  }
  throw new Error(`no process runs \`berth ${command}\``);
}

/** Empty: it has just ended. */
function readProcess(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

async function waitUntil<T>(
  what: string,
  look: () => Promise<T | undefined>,
  withinMs = DEADLINE_MS,
): Promise<T> {
  const until = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > until) throw new Error(`${what}: not within ${withinMs / 1000} s`);
    await sleep(250);
  }
}

/** What is read of the answers. */
interface Body {
  id?: string;
  status?: string;
  public_ip?: string;
  ssh_port?: number;
}

async function ask(
  url: string,
  key?: string,
  init: RequestInit = {},
): Promise<{ status: number; body: Body }> {
  const headers = {
    'Content-Type': 'application/json',
    ...(key !== undefined && { Authorization: `Bearer ${key}` }),
  };
  const reply = await fetch(url, { ...init, headers });
  const text = await reply.text();
  return { status: reply.status, body: text === '' ? {} : JSON.parse(text) };
}

function expectThat(what: string, isSo: boolean, seen?: unknown): void {
  if (!isSo) throw new Error(`not so: ${what}; seen: ${JSON.stringify(seen)}`);
  process.stdout.write(`  ${what}\n`);
}

async function tryServe(): Promise<{ server: Server; key: string }> {
  const server = new Server(config.Cmd);
  const key = await server.waitFor('it prints an API key', (output) => /berth_\w+/.exec(output)?.[0]);
  const [, hint = ''] = /console .*\n +(\S.*)$/m.exec(server.output) ?? [];
  const printed = run('buildah', inContainer(['sh', '-c', hint]));
  expectThat('the command that it prints makes a key of an operator', /^berthop_\w+/m.test(printed), hint);
  const health = await fetch(new URL('/healthz', BASE_URL));
  expectThat('/healthz answers 200', health.status === 200, health.status);
  const [, ...check] = config.Healthcheck.Test;
  run('buildah', inContainer(check));
  expectThat("the image's health check holds", true);
  const { uid } = serverProcess('serve');
  expectThat('it runs as its own user and not as root', config.User === 'node' && uid === 1000, uid);
  return { server, key };
}

/** Makes a machine, logs into it and destroys it. */
async function tryMachine(key: string): Promise<void> {
  const keyFile = join(folder, 'key');
  run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);
  const { body: availability } = await ask(`${BASE_URL}/availability`, key);
  const { status, body } = await ask(`${BASE_URL}/instances`, key, {
    method: 'POST',
    body: JSON.stringify({
      configuration_id: 'h100-sxm-1x',
      region: 'eu-frankfurt',
      name: 'image',
      ssh_keys: [readFileSync(`${keyFile}.pub`, 'utf8').trim()],
    }),
  });
  expectThat('a machine is made', status === 201, { status, body, availability });
  const url = `${BASE_URL}/instances/${body.id}`;
  const online = await waitUntil('the machine is ONLINE', async () => {
    const { body: seen } = await ask(url, key);
    return seen.status === 'ONLINE' ? seen : undefined;
  });
  const trust = [
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    'UserKnownHostsFile=/dev/null',
    '-o',
    'LogLevel=ERROR',
  ];
  const target = ['-i', keyFile, '-p', String(online.ssh_port), `ubuntu@${online.public_ip}`];
  const gpus = run('ssh', [...trust, ...target, 'nvidia-smi', '-L']);
  expectThat('ssh logs into it', gpus.includes('H100'), gpus);
  await ask(url, key, { method: 'DELETE' });
  await waitUntil('the machine is gone', async () =>
    (await ask(url, key)).status === 404 ? true : undefined,
  );
  expectThat('it is destroyed', true);
}

async function tryMarketplace(key: string): Promise<void> {
  writeFileSync(
    join(folder, 'marketplace.yaml'),
    `providers:\n  - { id: provider-d, base_url: ${BASE_URL}, api_key_env: PROVIDER_D_KEY, allow_private: true }\n`,
  );
  const args = [
    'marketplace',
    '--config',
    '/config/marketplace.yaml',
    '--database',
    'sqlite:/data/marketplace.db',
  ];
  const server = new Server(args, { PROVIDER_D_KEY: key });
  await server.waitFor('it says where it serves', (output) => /marketplace serves (\S+)/.exec(output)?.[1]);
  await waitUntil('the marketplace lists the offers', async () => {
    const { body } = await ask(`${MARKETPLACE_URL}/api/gpu-offers?limit=50`);
    return JSON.stringify(body).includes('h100-sxm-1x') ? true : undefined;
  });
  expectThat("`marketplace` lists the provider's offers", true);
  await server.stop('marketplace');
}

function tryConformance(key: string): void {
  const command = [
    ...config.Entrypoint,
    'conformance',
    BASE_URL,
    '--level',
    'read-only',
    '--state-dir',
    '/data/runs',
  ];
  const report = run('buildah', inContainer(command, { BERTH_API_KEY: key }));
  expectThat('`conformance` finds it conformant', /CONFORMANT/.test(report), report);
}

/** Watches the server with `conformance monitor`, until its page shows a first probe. */
async function tryMonitor(key: string): Promise<void> {
  writeFileSync(
    join(folder, 'monitor.yaml'),
    `state: /data/monitor
providers:
  - { name: image, base_url: '${BASE_URL}', api_key_env: KEY, budget_usd_per_day: 0.01, allow_private: true }
reads: { mean_hours: 0.01 }
listen: 0.0.0.0:9464
`,
  );
  const server = new Server(['conformance', 'monitor', '--config', '/config/monitor.yaml'], { KEY: key });
  await server.waitFor('it listens', (output) => /listening on port (\d+)/.exec(output)?.[1]);
  const metric = /^berth_monitor_last_probe_timestamp_seconds\S* \d{9,}/m;
  await waitUntil(
    'the monitor has probed the server',
    async () => {
      const metrics = await (await fetch('http://127.0.0.1:9464/metrics')).text();
      return metric.test(metrics) ? true : undefined;
    },
    READ_WITHIN_MS,
  );
  expectThat('`conformance monitor` probes it', true);
  await server.stop('conformance monitor');
}

try {
  const { server, key } = await tryServe();
  await tryMachine(key);
  tryConformance(key);
  await tryMonitor(key);
  await tryMarketplace(key);
  await server.stop('serve');
  expectThat('SIGTERM ends it well', true);
} finally {
  buildah('rm', container);
  rmSync(folder, { recursive: true });
}
