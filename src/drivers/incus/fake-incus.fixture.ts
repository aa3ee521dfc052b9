import type { MachineSpec } from '../../orchestrator/model/platform-driver.ts';
import { IncusApi } from './api.ts';
import type { IncusClient, SendOptions } from './client.ts';
import { driverOver } from './driver.fixture.ts';
import { IncusRefusal } from './errors.ts';
import { mark, UUID } from './translate.ts';

export const REF = 'berth-a';
const RUNNING = 103;
const ADDRESS = { family: 'inet', address: '10.0.0.5', scope: 'global' };
export const STOPPED = 102;

interface Fake {
  location: string;
  config: Record<string, string>;
  code: number;
  startedAt: string;
  snapshots?: { name: string }[];
  /** The use of its disks, as Incus measures it. */
  disk?: object;
}

/** A fake Incus: instances by name, on the members m1 and m2 or without a cluster. */
export function anIncus({ isClustered = true, options = {}, offers = new Map<string, object>() } = {}) {
  const instances = new Map<string, Fake>();
  const operations: Record<string, unknown>[] = [];
  const images = ['debian'];
  /** The storage pool; `refusal`: the answer to each write; `failure`: how a volume with data fails in the background. */
  const pool = {
    driver: 'lvm',
    status: 'Created',
    refusal: undefined as string | undefined,
    failure: undefined as string | undefined,
  };
  /** Limits of the project. */
  const limits: Record<string, { Limit: number; Usage: number }> = {};
  const sent: {
    method: string;
    path: string;
    query: unknown;
    body: Record<string, unknown>;
    etag: unknown;
  }[] = [];
  /**
   * Hooks: `run` before the next change arrives, `reads` while operations are read, `lists` once the instances are
   * listed.
   */
  const meanwhile: Partial<Record<'run' | 'reads' | 'lists', (() => void) | undefined>> = {};
  const tagOf = ({ config }: Fake): string => JSON.stringify(config);
  const show = (name: string) => {
    const { location, config, code, startedAt, snapshots, disk = { root: {} } } = instances.get(name) as Fake;
    const base = {
      name,
      type: 'container',
      status_code: code,
      created_at: '2026-11-23T01:00:00Z',
      location,
      config,
    };
    return {
      ...base,
      devices: {},
      expanded_config: config,
      expanded_devices: { root: { type: 'disk', path: '/', pool: 'default' } },
      snapshots,
      state: { status_code: code, started_at: startedAt, disk, network: { eth0: { addresses: [ADDRESS] } } },
    };
  };
  const members = ['m1', 'm2'].map((server_name) => ({
    server_name,
    status: 'Online',
    message: '',
    roles: ['database'],
    groups: [],
  }));
  const missing = (what: string) => new IncusRefusal(404, `${what} not found`, 'GET');
  const readHost = (path: string, { target }: Record<string, string>): unknown => {
    const environment = { server_clustered: isClustered, server_name: 'x', server_version: '6.0' };
    if (path === '/1.0') return { api_extensions: [], auth: 'trusted', environment };
    if (path === '/1.0/cluster/members') return members;
    if (path.endsWith('/state')) return { resources: limits };
    if (path === '/1.0/resources')
      return { cpu: { total: target === 'm2' ? 8 : 4 }, memory: { total: 2 ** 40 } };
    if (path.endsWith('/resources')) return { space: { total: 2 ** 40 } };
    if (path === '/1.0/storage-pools/default') return pool;
    return path.endsWith('/custom') ? [] : {};
  };
  const read = (path: string, query: Record<string, string>): unknown => {
    const name = path.split('/')[3] ?? '';
    if (path === '/1.0/operations') {
      meanwhile.reads?.();
      return { all: operations };
    }
    if (path === '/1.0/instances') {
      const listed = [...instances.keys()].map((one) => (query['recursion'] ? show(one) : `${path}/${one}`));
      meanwhile.lists?.();
      return listed;
    }
    if (path.startsWith('/1.0/instances/')) {
      if (instances.has(name)) return show(name);
      throw missing('Instance');
    }
    if (path.endsWith('/wait')) return { status_code: 400, err: pool.failure };
    const operation = operations.find(({ ['id']: id }) => path === `/1.0/operations/${id}`);
    if (operation !== undefined) return operation;
    if (path.startsWith('/1.0/operations/') || path.startsWith('/1.0/images/aliases')) throw missing(name);
    if (path.startsWith('/1.0/images/') && !images.includes(name)) throw missing('Image');
    return readHost(path, query);
  };
  const client = {
    project: 'default',
    get: async (path: string, query: Record<string, string> = {}) => {
      const found = instances.get(path.split('/')[3] ?? '');
      return { metadata: read(path, query), etag: found && tagOf(found), operation: undefined };
    },
    send: async (method: string, path: string, { query, body = {}, content, etag }: SendOptions = {}) => {
      if (pool.refusal !== undefined) throw new IncusRefusal(500, pool.refusal, method);
      meanwhile.run?.();
      meanwhile.run = undefined;
      sent.push({ method, path, query, body: body as Record<string, unknown>, etag });
      const found = instances.get(path.split('/')[3] ?? '');
      if (found !== undefined && etag !== undefined && etag !== tagOf(found))
        throw new IncusRefusal(412, "ETag doesn't match", method);
      if (method === 'PATCH') Object.assign(found?.config ?? {}, (body as { config: object }).config);
      if (method === 'DELETE') instances.delete(path.split('/')[3] ?? '');
      const operation = '5c3d55ca-a7c6-443f-a021-359f3a35c6c2';
      return {
        metadata: null,
        etag: undefined,
        operation: path.endsWith('/custom') && !content ? undefined : operation,
      };
    },
  } as unknown as IncusClient;
  return {
    instances,
    operations,
    images,
    pool,
    limits,
    sent,
    meanwhile,
    machines: driverOver(new IncusApi(client), { options, offers }),
    /** Renames an instance, as an operator would. */
    rename(from: string, to: string): void {
      instances.set(to, instances.get(from) as Fake);
      instances.delete(from);
    },
    changes: () => sent.map(({ method, path }) => `${method} ${path.slice('/1.0/instances/'.length)}`),
  };
}

/** `noted`: the id in its mark, which this Berth writes. */
export const aMachine = ({ code = RUNNING, uuid = 'u1', noted = 'u1' as string | null } = {}): Fake => ({
  location: 'm1',
  code,
  startedAt: '2026-11-23T02:00:00Z',
  config: {
    [mark.createdBy]: 'berth',
    [mark.ref]: REF,
    [mark.phase]: 'created',
    [UUID]: uuid,
    ...(noted !== null && { [mark.uuid]: noted }),
  },
});

export const running = (description: string, name: string) => ({
  id: '00000000-0000-4000-8000-000000000001',
  created_at: '2026-11-23T02:00:00Z',
  description,
  status_code: 103,
  resources: { instances: [`/1.0/instances/${name}`] },
});

export const spec: MachineSpec = {
  ref: REF,
  offerId: 'small',
  datacenter: 'd',
  hostname: 'trainer-one',
  image: 'debian',
  vcpus: 2,
  memoryGb: 1,
  rootDiskGb: 1,
  gpuCount: 0,
  gpuType: undefined,
  sshKeys: [],
  cloudInit: undefined,
  note: 'a note',
};
