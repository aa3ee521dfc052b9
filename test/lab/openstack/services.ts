import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { GUESTS } from '../libvirt/lab-host.ts';
import { type Namespace, openNamespace } from '../namespace.ts';
import { type ApiName, address, index, ports, SITE, urlOf, writeSettings } from './settings.ts';

/** Debian's packages, unpacked by packages.sh. */
const PACKAGES = join(GUESTS, 'openstack/usr');
/** A site whose services have been set up and stopped. */
export const TEMPLATE = join(GUESTS, 'openstack-site');
const PYTHON = fileURLToPath(new URL('./python', import.meta.url));
/** A process that has to start on a busy machine. */
const PATIENCE_MS = 600_000;

const environment: Record<string, string> = {
  PATH: '/usr/bin:/usr/sbin:/bin:/sbin',
  HOME: SITE,
  LANG: 'C.UTF-8',
  PYTHONPATH: PYTHON,
  // Compiled once for all sites: the packages' own folders are read-only.
  PYTHONPYCACHEPREFIX: join(GUESTS, 'openstack-python'),
  PYTHONWARNINGS: 'ignore',
  EVENTLET_NO_GREENDNS: 'yes',
  OS_PLACEMENT_CONFIG_DIR: `${SITE}/etc`,
  OS_NEUTRON_CONFIG_FILES: `${SITE}/etc/neutron.conf`,
  RABBITMQ_NODENAME: 'rabbit@localhost',
  RABBITMQ_MNESIA_BASE: `${SITE}/rabbit`,
  RABBITMQ_LOG_BASE: `${SITE}/log`,
  RABBITMQ_CONFIG_FILE: `${SITE}/etc/rabbit.conf`,
  RABBITMQ_ENABLED_PLUGINS_FILE: `${SITE}/etc/rabbit_plugins`,
  // One scheduler, which sleeps when it has nothing to do.
  RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none',
};

const wsgi = (name: ApiName, ...rest: string[]): string[] => [
  ...`uwsgi-core --plugin python311 --http-socket ${address}:${ports[name]} --master --no-orphans`.split(' '),
  // One thread: several of one process wait for each other more than they work.
  ...'--processes 1 --enable-threads --lazy-apps --die-on-term --disable-logging'.split(' '),
  ...'--post-buffering 65535 --buffer-size 65535 --add-header'.split(' '),
  'Connection: close',
  ...rest,
];
const ofConfig = (program: string, config: string, ...rest: string[]): string[] => [
  ...[program, '--config-file', `${SITE}/etc/${config}.conf`, ...rest],
];
const service = (name: string, config: string): string[] =>
  ofConfig(name, config, '--log-file', `${SITE}/log/${name}.log`);

/** How each process is started; nova-compute is started by its host's name. */
const commands = {
  mariadb: [
    ...`mariadbd --no-defaults --user=root --datadir=${SITE}/db --socket=${SITE}/mariadb.sock`.split(' '),
    ...`--bind-address=${address} --max-connections=400 --skip-name-resolve`.split(' '),
    // What it writes need not survive this machine.
    ...'--innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0'.split(' '),
  ],
  rabbitmq: ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
  keystone: [
    ...wsgi('keystone', '--wsgi-file', '/usr/bin/keystone-wsgi-public'),
    ...['--pyargv', `--config-file ${SITE}/etc/keystone.conf`],
  ],
  placement: wsgi('placement', '--wsgi-file', '/usr/bin/placement-api'),
  glance: service('glance-api', 'glance'),
  neutron: wsgi('neutron', '--wsgi-file', '/usr/bin/neutron-api'),
  'nova-api': service('nova-api', 'nova'),
  'nova-scheduler': service('nova-scheduler', 'nova'),
  'nova-conductor': service('nova-conductor', 'nova'),
  'cinder-api': service('cinder-api', 'cinder'),
  'cinder-scheduler': service('cinder-scheduler', 'cinder'),
  'cinder-volume': service('cinder-volume', 'cinder'),
};
export type ServiceName = keyof typeof commands;
const serviceNames = Object.keys(commands) as ServiceName[];

/** Programs of unpacked packages, in a network and mount namespace of their own. */
export class Site implements AsyncDisposable {
  readonly folder: string;
  readonly namespace: Namespace;
  readonly #running = new Map<string, ChildProcess>();

  private constructor(folder: string, namespace: Namespace) {
    this.folder = folder;
    this.namespace = namespace;
  }

  /** A site with an empty folder, or with a copy of the template's. */
  static async open(computes: readonly string[], from?: 'template'): Promise<Site> {
    const folder = mkdtempSync(join(tmpdir(), 'openstack-'));
    const namespace = await openNamespace(index);
    const site = new Site(folder, namespace);
    if (from === 'template') namespace.run('cp', '-r', '--sparse=always', `${TEMPLATE}/.`, folder);
    else writeSettings(folder, computes);
    mountPackages(namespace, folder);
    namespace.run('mount', '--bind', folder, SITE);
    return site;
  }

  get running(): string[] {
    return [...this.#running.keys()];
  }

  /** Runs a program of the packages to its end; what it printed. */
  async run(command: string, ...args: string[]): Promise<string> {
    const child = spawn(...this.#enter(command, ...args), { stdio: ['ignore', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    child.stderr.on('data', (chunk) => output.push(chunk));
    const [status] = await once(child, 'close');
    const text = Buffer.concat(output).toString();
    if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${text}`);
    return text;
  }

  #enter(...argv: string[]): [string, string[]] {
    return this.namespace.enter(...withPackages(...argv));
  }

  start(name: ServiceName): void {
    this.#start(name, commands[name]);
  }

  /** What the others need: some end if Keystone does not answer or its catalog is empty, and RabbitMQ is tried again late. */
  async startKeystone(): Promise<void> {
    for (const name of ['mariadb', 'rabbitmq', 'keystone'] as const)
      if (!this.#running.has(name)) this.start(name);
    await this.answers('keystone');
    await this.isSo('rabbitmq', () => isListening(5672));
  }

  /** Each of the others, and a nova-compute for each host. */
  startServices(computes: readonly string[]): void {
    for (const name of serviceNames) if (!this.#running.has(name)) this.start(name);
    for (const host of computes) this.startCompute(host);
  }

  async answer(): Promise<void> {
    await Promise.all(Object.keys(ports).map((name) => this.answers(name as ApiName)));
  }

  startCompute(host: string): void {
    const log = ['--log-file', `${SITE}/log/nova-compute-${host}.log`];
    this.#start(host, ofConfig('nova-compute', `nova-${host}`, ...log));
  }

  #start(name: string, argv: readonly string[]): void {
    const output = openSync(join(this.folder, `log/${name}.out`), 'a');
    const child = spawn(...this.#enter(...argv), { stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    this.#running.set(name, child);
  }

  /** Ends a process and those that it started. SIGTERM lets it write what it has. */
  async stop(name: string, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#running.get(name);
    this.#running.delete(name);
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    process.kill(-child.pid, signal);
    await ended;
  }

  /** Until an API answers. @throws {Error} if its process has ended, or after ten minutes */
  async answers(name: ApiName): Promise<void> {
    await this.isSo(name, async () => (await fetch(urlOf(name)).catch(() => undefined)) !== undefined);
  }

  /** Until it is so. @throws {Error} if the service has ended, or after ten minutes */
  async isSo(name: string, isSo: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await isSo())) {
      const { exitCode, signalCode } = this.#running.get(name) ?? {};
      if (exitCode !== null || signalCode !== null || Date.now() > deadline)
        throw new Error(`${name} is not up (${exitCode ?? signalCode}):\n${this.logOf(name)}`);
      await sleep(200);
    }
  }

  /** The end of what a process has printed and logged. */
  logOf(name: string): string {
    const files = [
      `${name}.out`,
      `${name}.log`,
      `${name}-api.log`,
      `${name}-server.log`,
      `nova-compute-${name}.log`,
    ];
    const texts = files.map((file) => join(this.folder, 'log', file)).filter((file) => existsSync(file));
    return texts.map((file) => readFileSync(file, 'utf8').slice(-3000)).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.namespace.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Whether something listens on a port of the site. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, address);
  const answer = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return answer;
}

/** Arguments that start a program of the packages, in a namespace where they are mounted. */
export const withPackages = (...argv: string[]): string[] => [
  'env',
  '-i',
  ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
  ...argv,
];

/** Puts the packages' files beside the machine's own in `/usr`. */
export function mountPackages({ run }: Pick<Namespace, 'run'>, folder: string): void {
  // Nova finds hypervisor drivers in this folder only.
  const drivers = join(folder, 'usr/lib/python3/dist-packages/nova/virt');
  mkdirSync(drivers, { recursive: true });
  writeFileSync(join(drivers, 'berth_lab.py'), 'from berth_lab.compute import LabHypervisor\n');
  const lower = [join(folder, 'usr'), PACKAGES, '/usr'].join(':');
  run('mount', '-t', 'overlay', 'overlay', '-o', `lowerdir=${lower}`, '/usr');
}
