import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { IncusApi } from '../../../src/drivers/incus/api.ts';

const nodeInit = fileURLToPath(new URL('./node-init.sh', import.meta.url));
export const imageFile = join(process.env['BERTH_LAB_GUESTS'] ?? '', 'incus.tar.gz');
const WAIT_MS = 180_000;

export const lan = {
  gateway: '10.77.0.1',
  network: '10.77.0.0/24',
  member: (index: number) => `10.77.0.${10 + index}`,
};

/** The network that the nodes are on, and a folder for what they have. */
export interface Lan {
  folder: string;
  /** Tells its control groups from those of another run. */
  run: string;
  /** Ends the nodes, and with each its processes, what a machine has mounted, and loop devices. */
  close(nodes: readonly Node[]): Promise<void>;
}

export function openLan(): Lan {
  assertNoWayOut();
  const folder = mkdtempSync(join(tmpdir(), 'incus-'));
  // A machine's root is an unprivileged user here, and must be able to reach its disk.
  chmodSync(folder, 0o711);
  ip('link', 'set', 'lo', 'up');
  ip('link', 'add', 'lab0', 'type', 'bridge');
  ip('addr', 'add', `${lan.gateway}/24`, 'dev', 'lab0');
  ip('link', 'set', 'lab0', 'up');
  return {
    folder,
    run: randomBytes(3).toString('hex'),
    async close(nodes) {
      for (const node of nodes) await node.powerOff();
      for (const node of nodes) node.removeCgroup();
      ip('link', 'del', 'lab0');
      detachLoops(folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Nothing of the lab may reach a network that it did not make. */
function assertNoWayOut(): void {
  if (execFileSync('ip', ['route', 'show', 'default'], { encoding: 'utf8' }) !== '')
    throw new Error('run the lab with `test/lab/run.sh`: it makes a network namespace of its own');
}

/** One lab host: its own processes, network, mounts and control groups, with an incusd in it. */
export class Node {
  readonly name: string;
  readonly address: string;
  readonly folder: string;
  readonly cgroup: string;
  #child: ChildProcess | undefined;
  #answers: AsyncIterator<string> | undefined;

  constructor(index: number, { folder, run }: Pick<Lan, 'folder' | 'run'>) {
    this.name = `n${index}`;
    this.address = lan.member(index);
    this.folder = join(folder, this.name);
    const root = existsSync('/sys/fs/cgroup/unified') ? '/sys/fs/cgroup/unified' : '/sys/fs/cgroup';
    this.cgroup = join(root, `berth-${run}-${this.name}`);
  }

  get socket(): string {
    return join(this.folder, 'state', 'unix.socket');
  }

  get log(): string {
    return readFileSync(join(this.folder, 'incusd.log'), 'utf8');
  }

  async powerOn(): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    mkdirSync(this.cgroup, { recursive: true });
    // The control group first, so that the node sees it as its root.
    const join_ = `echo $$ > ${this.cgroup}/cgroup.procs; exec "$@"`;
    const namespaces = [
      '--net',
      '--mount',
      '--pid',
      '--ipc',
      '--cgroup',
      '--fork',
      '--kill-child',
      '--mount-proc',
    ];
    const child = spawn('sh', ['-c', join_, 'sh', 'unshare', ...namespaces, nodeInit, this.folder], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await this.#expect('ready');
    const pid = this.#initPid();
    const outer = this.#cable();
    ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
    ip('link', 'set', outer, 'master', 'lab0', 'up');
    const inside = (...args: string[]) => execFileSync('nsenter', ['-t', String(pid), '-n', 'ip', ...args]);
    inside('addr', 'add', `${this.address}/24`, 'dev', 'eth0');
    inside('link', 'set', 'eth0', 'up');
  }

  /** The pid, in this process's namespace, of the node's first process. */
  #initPid(): number {
    const pid = this.#child?.pid;
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return Number(child);
  }

  async startIncus(): Promise<void> {
    await this.#order('start', 'started');
  }

  /** Only the daemon: machines go on. */
  async killIncus(): Promise<void> {
    await this.#order('kill', 'killed');
  }

  /** As if its power failed: the daemon and every machine on it are gone at once. */
  async powerOff(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    process.kill(this.#initPid(), 'SIGKILL');
    await ended;
    this.#child = undefined;
    // It goes with the namespace, but later, and the next node of that name cannot wait for it.
    spawnSync('ip', ['link', 'del', this.#cable()]);
  }

  #cable(): string {
    return `v${this.name}`;
  }

  /** Runs a program in the node, as root of it. */
  run(...command: string[]): string {
    return execFileSync('nsenter', ['-t', String(this.#initPid()), '-m', '-n', '-p', ...command], {
      encoding: 'utf8',
      env: { ...process.env, INCUS_DIR: join(this.folder, 'state'), HOME: this.folder },
    });
  }

  removeCgroup(): void {
    try {
      const folders = execFileSync('find', [this.cgroup, '-depth', '-type', 'd'], { encoding: 'utf8' });
      for (const folder of folders.trim().split('\n')) rmdirSync(folder);
    } catch {}
  }

  async #order(order: string, expected: string): Promise<void> {
    this.#child?.stdin?.write(`${order}\n`);
    await this.#expect(expected);
  }

  async #expect(expected: string): Promise<void> {
    const answer = await this.#answers?.next();
    if (answer?.value !== expected)
      throw new Error(`${this.name} says ${answer?.value}, not ${expected}; see ${this.folder}`);
  }
}

/** Every kind of thing that Berth makes, by name: what is there must be the same before and after. */
export async function contentsOf(api: IncusApi, pool: string, network: string): Promise<string[]> {
  const [instances, volumes, forwards, operations, leases] = await Promise.all([
    api.instancesWithoutState(),
    api.volumes(pool),
    api.forwards(network),
    api.operations(),
    api.client.get(`/1.0/networks/${network}/leases`),
  ]);
  const isFixed = ({ type }: { type: string }): boolean => type === 'gateway' || type === 'uplink';
  return [
    ...instances.map(({ name }) => `instance ${name}`),
    ...volumes
      .filter(({ type }) => type === 'custom')
      .map(({ name, location }) => `volume ${name} on ${location}`),
    ...forwards.map(({ listen_address: address, ports }) => `forward ${address} with ${ports.length}`),
    ...operations
      .filter(({ status_code: code }) => code < 200)
      .map(({ description }) => `operation ${description}`),
    ...(leases.metadata as { type: string; hostname: string }[])
      .filter((lease) => !isFixed(lease))
      .map(({ hostname }) => `lease ${hostname}`),
  ].sort();
}

function detachLoops(folder: string): void {
  const loops = execFileSync('losetup', ['-a'], { encoding: 'utf8' }).split('\n');
  for (const line of loops)
    if (line.includes(folder)) execFileSync('losetup', ['-d', line.split(':')[0] ?? '']);
}

export function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Until it is so. @throws {Error} after a minute */
export async function waitFor(what: string, isSo: () => Promise<boolean>, withinMs = WAIT_MS): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`it did not come about that ${what}`);
    await sleep(200);
  }
}
