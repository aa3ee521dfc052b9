import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { PlatformDriver, VolumeDriver } from '../../orchestrator/model/platform-driver.ts';
import type { Forward } from './api.ts';
import { openIncus } from './open.ts';
import { incusConfigSchema } from './options.ts';
import { mark } from './translate.ts';

const POOL = '/1.0/storage-pools/default/volumes/custom';

interface FakeVolume {
  name: string;
  location: string;
  config: Record<string, string>;
  /** The tenant's data. Null if the disk is empty or still being made. */
  data: string | null;
  usedBy: string[];
}

type Devices = Record<string, Record<string, string>>;

interface FakeMachine {
  location: string;
  devices: Devices;
  /** Configuration. The default is that of a machine of Berth. */
  config?: Record<string, string>;
  /** Status code. The default is running. */
  code?: number;
}

interface Sent {
  method: string;
  path: string;
  target: string;
  isRecursive: boolean;
  match: string | undefined;
  body: {
    name?: string;
    config?: Record<string, string>;
    devices?: Devices;
    ports?: Forward['ports'];
    source?: { type: string; name: string; location: string };
  };
}

interface Answer {
  status: number;
  metadata?: unknown;
  error?: string;
  operation?: string;
  etag?: string;
}

const marked = (name: string): Record<string, string> => ({
  [mark.createdBy]: 'berth',
  [mark.ref]: name,
  [mark.phase]: 'created',
});
const ok = (metadata: unknown = {}): Answer => ({ status: 200, metadata });
const no = (status: number, error: string): Answer => ({ status, error });
const tagOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/**
 * A fake Incus cluster with volumes, machines and forwards: one record per member, copies as operations, synchronous
 * deletes.
 */
class FakeCluster {
  readonly volumes: FakeVolume[] = [];
  readonly machines = new Map<string, FakeMachine>();
  readonly forwards: Forward[] = [];
  /** Each change: method, member and name. */
  readonly log: string[] = [];
  readonly operations = new Map<string, { status: number; of: string }>();

  at(member: string, name: string): FakeVolume | undefined {
    return this.volumes.find((one) => one.location === member && one.name === name);
  }

  /** Completes the running copies. */
  finishCopies(): void {
    for (const [id, operation] of this.operations) {
      if (operation.status !== 103) continue;
      this.operations.set(id, { ...operation, status: 200 });
      const source = this.volumes.find(({ data }) => data !== null);
      const copy = this.volumes.find(({ name }) => name === operation.of);
      if (copy !== undefined) copy.data = source?.data ?? null;
    }
  }

  /** Incus forgets operations some seconds after their end, and when its daemon restarts. */
  forgetOperations(): void {
    this.operations.clear();
  }

  async answer(sent: Sent): Promise<Answer> {
    const { method, path, target } = sent;
    if (method !== 'GET') this.log.push(`${method} ${target} ${path.split('/').at(-1)}`);
    if (path.startsWith(POOL)) return this.#volume(sent);
    if (path.startsWith('/1.0/instances/')) return this.#machine(sent);
    if (path.startsWith('/1.0/networks/')) return this.#network(sent);
    if (path === '/1.0/instances') {
      const names = [...this.machines.keys()];
      return ok(names.map((name) => (sent.isRecursive ? this.#showMachine(name) : `${path}/${name}`)));
    }
    if (path === '/1.0/operations')
      return ok({ all: [...this.operations.keys()].map((id) => this.#showOperation(id)) });
    if (path.startsWith('/1.0/operations/')) {
      const id = path.split('/')[3] ?? '';
      return this.operations.has(id) ? ok(this.#showOperation(id)) : no(404, 'Operation not found');
    }
    return this.#host(path, target);
  }

  #host(path: string, target: string): Answer {
    const environment = { server_clustered: true, server_name: 'm1', server_version: '6.0.4' };
    if (path === '/1.0') return ok({ api_extensions: [], auth: 'trusted', environment });
    if (path === '/1.0/cluster/members')
      return ok(
        ['m1', 'm2'].map((server_name) => ({
          server_name,
          status: 'Online',
          message: '',
          roles: ['database'],
          groups: ['default'],
        })),
      );
    if (path === '/1.0/resources') return ok({ cpu: { total: 8 }, memory: { total: 2 ** 36 } });
    if (path === '/1.0/storage-pools/default') return ok({ driver: 'lvm', status: 'Created' });
    if (path.endsWith('/resources')) return ok({ space: { total: (target === 'm1' ? 2 : 1) * 2 ** 40 } });
    return path === '/1.0/projects/default' ? ok() : no(404, `nothing at ${path}`);
  }

  #network({ method, body }: Sent): Answer {
    if (method === 'GET') return ok(this.forwards);
    for (const forward of this.forwards) forward.ports = body.ports ?? [];
    return ok();
  }

  async #volume({ method, path, target, match, body }: Sent): Promise<Answer> {
    if (path === POOL && method === 'GET') return ok(this.volumes.map((one) => this.#show(one)));
    if (path === POOL) return this.#makeVolume(target, body);
    const isState = path.endsWith('/state');
    const volume = this.at(target, path.split('/').at(isState ? -2 : -1) ?? '');
    if (volume === undefined) return no(404, 'Storage volume not found');
    if (isState) return ok({ usage: { used: volume.data?.length } });
    const etag = tagOf(volume.config);
    if (method === 'GET') return { ...ok(this.#show(volume)), etag };
    if (method === 'PATCH') {
      if (match !== undefined && match !== etag) return no(412, "ETag doesn't match");
      Object.assign(volume.config, body.config);
      return ok();
    }
    // Incus deletes the storage first, then the record. The deletion continues if the client disconnects.
    if (volume.usedBy.length > 0) return no(400, 'The storage volume is still in use');
    const index = this.volumes.indexOf(volume);
    if (index >= 0) this.volumes.splice(index, 1);
    return ok();
  }

  async #makeVolume(target: string, { name = '', config = {}, source }: Sent['body']): Promise<Answer> {
    if (source !== undefined && this.at(source.location, source.name) === undefined)
      return no(404, 'Storage volume not found');
    if (this.at(target, name) !== undefined) return no(409, 'Volume by that name already exists');
    this.volumes.push({ name, location: target, config: { ...config }, data: null, usedBy: [] });
    if (source === undefined) return ok();
    const id = `00000000-0000-4000-8000-00000000000${this.operations.size + 1}`;
    this.operations.set(id, { status: 103, of: name });
    return { status: 202, operation: `/1.0/operations/${id}` };
  }

  #machine({ method, path, match, body }: Sent): Answer {
    const name = path.split('/')[3] ?? '';
    const machine = this.machines.get(name);
    if (machine === undefined) return no(404, 'Instance not found');
    const { config = marked(name) } = machine;
    const etag = tagOf([machine.devices, config]);
    if (method === 'GET') return { ...ok(this.#showMachine(name)), etag };
    if (match !== undefined && match !== etag) return no(412, "ETag doesn't match");
    machine.devices = { ...(method === 'PATCH' && machine.devices), ...body.devices };
    if (body.config !== undefined) machine.config = { ...(method === 'PATCH' && config), ...body.config };
    for (const volume of this.volumes) {
      const isUsed =
        volume.location === machine.location &&
        Object.values(machine.devices).some(({ source }) => source === volume.name);
      volume.usedBy = volume.usedBy.filter((one) => one !== name).concat(isUsed ? [name] : []);
    }
    return ok();
  }

  #show({ name, location, config, usedBy }: FakeVolume) {
    return {
      name,
      type: 'custom',
      content_type: 'filesystem',
      created_at: '2026-11-23T01:00:00Z',
      location,
      config,
      used_by: usedBy.map((one) => `/1.0/instances/${one}`),
    };
  }

  #showMachine(name: string) {
    const machine = this.machines.get(name) as FakeMachine;
    const { location, devices, code = 103, config = marked(name) } = machine;
    return {
      name,
      type: 'container',
      status: code === 102 ? 'Stopped' : 'Running',
      status_code: code,
      created_at: '2026-11-23T01:00:00Z',
      location,
      devices,
      config,
      expanded_config: {},
      expanded_devices: devices,
      state: { status_code: code },
    };
  }

  #showOperation(id: string) {
    const { status = 404, of = '' } = this.operations.get(id) ?? {};
    return {
      id,
      created_at: '2026-11-23T01:00:00Z',
      description: 'Copying storage volume',
      status_code: status,
      resources: { storage_volumes: [`${POOL}/${of}`] },
    };
  }
}

export type Cluster = FakeCluster & {
  /** Opens the driver as one more process. */
  open(more?: object): PlatformDriver & { volumes: VolumeDriver };
};

/** Starts the cluster behind an HTTP server. */
export async function aCluster(): Promise<Cluster> {
  const cluster = new FakeCluster();
  const folder = mkdtempSync(join(tmpdir(), 'fake-incus-'));
  const socket = join(folder, 's');
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const { pathname: path, searchParams } = new URL(request.url ?? '', 'http://incus');
    const { status, etag, ...answer } = await cluster.answer({
      method: request.method ?? '',
      path,
      target: searchParams.get('target') ?? 'm1',
      isRecursive: searchParams.has('recursion'),
      match: request.headers['if-match'],
      body: text === '' ? {} : JSON.parse(text),
    });
    const type = answer.error !== undefined ? 'error' : answer.operation !== undefined ? 'async' : 'sync';
    response.writeHead(status, { 'content-type': 'application/json', ...(etag && { etag }) });
    response.end(JSON.stringify({ type, error_code: type === 'error' ? status : 0, ...answer }));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(folder, { recursive: true });
  });
  const open = (more: object = {}) => {
    const options = incusConfigSchema.parse({ driver: 'incus', address: `unix:${socket}`, ...more });
    const catalog = { offers: new Map(), regions: new Map() } as unknown as Catalog;
    const connection = { addresses: options.address, project: 'default' };
    const driver = openIncus(options, connection, { catalog, clock: { now: () => Date.now() } } as never);
    onTestFinished(() => driver.close());
    return driver as PlatformDriver & { volumes: VolumeDriver };
  };
  return Object.assign(cluster, { open });
}
