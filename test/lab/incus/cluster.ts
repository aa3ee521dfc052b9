import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { IncusApi } from '../../../src/drivers/incus/api.ts';
import { IncusClient } from '../../../src/drivers/incus/client.ts';
import { isNotFound } from '../../../src/drivers/incus/errors.ts';

const nodeInit = fileURLToPath(new URL('./node-init.sh', import.meta.url));
const imageFile = join(process.env['BERTH_LAB_GUESTS'] ?? '', 'incus.tar.gz');

export const lan = {
  gateway: '10.77.0.1',
  network: '10.77.0.0/24',
  member: (index: number) => `10.77.0.${10 + index}`,
};
export const tenants = { network: 'tenants', gateway: '10.88.0.1', subnet: '10.88.0.0/24', acl: 'tenants' };
export const image = { alias: 'debian', name: 'debian-12' };
const POOL_SIZE = '8GiB';
const WAIT_MS = 60_000;

/** One lab host: its own processes, network, mounts and control groups, with an incusd in it. */
class Node {
  readonly name: string;
  readonly address: string;
  readonly folder: string;
  readonly cgroup: string;
  #child: ChildProcess | undefined;
  #answers: AsyncIterator<string> | undefined;

  constructor(index: number, folder: string, run: string) {
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

export interface Cluster extends AsyncDisposable {
  nodes: readonly [Node, Node, Node];
  /** Of each member, over its socket. */
  api: IncusApi;
  folder: string;
  /** `platform:` of berth.yaml for it, in JSON. */
  platform(more?: object): Record<string, unknown>;
  /** Every kind of thing that Berth makes, by name: what is there must be the same before and after. */
  contents(): Promise<string[]>;
  /** Each member unpacks the image again for the next machine there. */
  forgetUnpackedImage(): Promise<void>;
  /** Until a member is shown so. */
  shown(name: string, status: 'Online' | 'Offline'): Promise<void>;
}

/** A cluster of three, with a pool, a network as docs/how-to/incus.md sets it up, and an image. */
export async function startCluster(): Promise<Cluster> {
  assertNoWayOut();
  const run = randomBytes(3).toString('hex');
  const folder = mkdtempSync(join(tmpdir(), 'incus-'));
  // The root of a machine is nobody here, and must find its way to its disk.
  chmodSync(folder, 0o711);
  ip('link', 'set', 'lo', 'up');
  ip('link', 'add', 'lab0', 'type', 'bridge');
  ip('addr', 'add', `${lan.gateway}/24`, 'dev', 'lab0');
  ip('link', 'set', 'lab0', 'up');
  const nodes = [1, 2, 3].map((index) => new Node(index, folder, run)) as [Node, Node, Node];
  await Promise.all(nodes.map((node) => node.powerOn()));
  await Promise.all(nodes.map((node) => node.startIncus()));
  const clients = nodes.map(
    (node) => new IncusClient({ addresses: [`unix:${node.socket}`], project: 'default' }),
  );
  const [first, ...others] = clients as [IncusClient, IncusClient, IncusClient];
  await form(nodes, first, others);
  const api = new IncusApi(first);
  const files = await trustClient(first, folder);
  await importImage(nodes[0]);
  const addresses = Object.fromEntries(nodes.map((node) => [node.name, node.address]));
  const cluster: Cluster = {
    nodes,
    api,
    folder,
    platform: (more = {}) => ({
      driver: 'incus',
      address: nodes.map((node) => `https://${node.address}:8443`),
      ...files,
      storage_pool: 'local',
      network: tenants.network,
      port_forwards: { ports: '22000-22099', addresses },
      images: { [image.name]: { alias: image.alias, login_user: 'debian' } },
      overcommit: { cpu: 8 },
      shutdown_s: 10,
      ...more,
    }),
    contents: () => contentsOf(api),
    async forgetUnpackedImage() {
      const { metadata } = await first.get(`/1.0/images/aliases/${image.alias}`);
      const path = `/1.0/storage-pools/local/volumes/image/${(metadata as { target: string }).target}`;
      for (const { name: target } of nodes)
        await first.send('DELETE', path, { query: { target } }).catch((error) => {
          if (!isNotFound(error)) throw error;
        });
    },
    async shown(name, status) {
      await waitFor(`${name} is ${status}`, async () =>
        (await api.members()).some((member) => member.server_name === name && member.status === status),
      );
    },
    async [Symbol.asyncDispose]() {
      // Their processes end with the nodes; what a machine has mounted, and loop devices, with them.
      for (const node of nodes) await node.powerOff();
      await Promise.all(clients.map((client) => client.close()));
      for (const node of nodes) node.removeCgroup();
      ip('link', 'del', 'lab0');
      detachLoops(folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return cluster;
}

/** Nothing of the lab may reach a network that it did not make. */
function assertNoWayOut(): void {
  if (execFileSync('ip', ['route', 'show', 'default'], { encoding: 'utf8' }) !== '')
    throw new Error('run the lab with `npm run test:lab`: it makes a network namespace of its own');
}

async function form(
  nodes: readonly Node[],
  first: IncusClient,
  others: readonly IncusClient[],
): Promise<void> {
  const clients = [first, ...others];
  for (const [index, { address }] of nodes.entries())
    await clients[index]?.send('PATCH', '/1.0', {
      body: { config: { 'core.https_address': `${address}:8443` } },
    });
  await first.send('POST', '/1.0/storage-pools', {
    body: { name: 'local', driver: 'btrfs', config: { size: POOL_SIZE } },
  });
  await first.send('POST', '/1.0/network-acls', { body: tenantRules() });
  await first.send('POST', '/1.0/networks', {
    body: {
      name: tenants.network,
      type: 'bridge',
      config: {
        'ipv4.address': `${tenants.gateway}/24`,
        'ipv4.nat': 'true',
        'ipv6.address': 'none',
        'security.acls': tenants.acl,
        'security.acls.default.ingress.action': 'allow',
        'security.acls.default.egress.action': 'allow',
      },
    },
  });
  await ended(first, await first.send('PUT', '/1.0/cluster', { body: { server_name: 'n1', enabled: true } }));
  const { metadata } = await first.get('/1.0');
  const { certificate } = (metadata as { environment: { certificate: string } }).environment;
  for (const [index, client] of others.entries()) {
    const node = nodes[index + 1] as Node;
    const invited = await first.send('POST', '/1.0/cluster/members', { body: { server_name: node.name } });
    const { serverName, fingerprint, addresses, secret, expiresAt } = (
      invited.metadata as { metadata: Record<string, unknown> }
    ).metadata;
    const token = { server_name: serverName, fingerprint, addresses, secret, expires_at: expiresAt };
    const reply = await client.send('PUT', '/1.0/cluster', {
      body: {
        server_name: node.name,
        enabled: true,
        server_address: `${node.address}:8443`,
        cluster_address: `${lan.member(1)}:8443`,
        cluster_certificate: certificate,
        cluster_token: Buffer.from(JSON.stringify(token)).toString('base64'),
        member_config: [{ entity: 'storage-pool', name: 'local', key: 'size', value: POOL_SIZE }],
      },
    });
    await ended(client, reply);
  }
  await first.send('PATCH', '/1.0', { body: { config: { 'cluster.offline_threshold': '11' } } });
}

/** As docs/how-to/incus.md says: machines reach the world, and neither the hosts nor what is behind them. */
function tenantRules(): object {
  return {
    name: tenants.acl,
    egress: [
      { action: 'drop', state: 'enabled', destination: `${tenants.gateway}/32` },
      { action: 'drop', state: 'enabled', destination: lan.network },
    ],
    ingress: [],
  };
}

async function ended(client: IncusClient, { operation }: { operation: string | undefined }): Promise<void> {
  const api = new IncusApi(client);
  await waitFor('the operation has ended', async () => {
    const found = operation === undefined ? undefined : await api.operation(operation).catch(() => null);
    if (found === null) return false;
    if (found !== undefined && found.status_code >= 400) throw new Error(found.err);
    return found === undefined || found.status_code === 200;
  });
}

/** A key and its certificate, which nobody knows yet; their files are beside each other. */
export function makeCertificate(folder: string, name: string): { certificate: string; key: string } {
  const [certificate, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-days', '2'];
  const files = ['-subj', `/CN=${name}`, '-keyout', key, '-out', certificate];
  execFileSync('openssl', ['req', '-x509', ...kind, ...files], { stdio: 'ignore' });
  return { certificate, key };
}

async function trustClient(client: IncusClient, folder: string) {
  const at = (name: string): string => join(folder, name);
  makeCertificate(folder, 'client');
  const pem = readFileSync(at('client.crt'), 'utf8');
  const certificate = pem.replace(/-----[A-Z ]+-----|\s/g, '');
  await client.send('POST', '/1.0/certificates', { body: { name: 'berth', type: 'client', certificate } });
  const { metadata } = await client.get('/1.0');
  writeFileSync(
    at('server.crt'),
    (metadata as { environment: { certificate: string } }).environment.certificate,
  );
  return {
    client_certificate: at('client.crt'),
    client_key: at('client.key'),
    server_certificate: at('server.crt'),
  };
}

async function importImage(node: Node): Promise<void> {
  node.run('incus', 'image', 'import', imageFile, '--alias', image.alias);
}

async function contentsOf(api: IncusApi): Promise<string[]> {
  const [instances, volumes, forwards, operations, leases] = await Promise.all([
    api.instancesWithoutState(),
    api.volumes('local'),
    api.forwards(tenants.network),
    api.operations(),
    api.client.get(`/1.0/networks/${tenants.network}/leases`),
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

function ip(...args: string[]): void {
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
