import { Refusal } from '../surroundings.ts';
import { type Cluster, NETWORK, type Operation, POOL, PROJECT } from './cluster.ts';
import { IMAGE, InstanceApi, type Reply, type Sent, tagOf } from './instance-api.ts';
import { ForwardApi, StorageApi } from './storage-api.ts';

const GIB = 2 ** 30;
const VOLUMES = `/1.0/storage-pools/${POOL}/volumes/custom`;
const FORWARDS = `/1.0/networks/${NETWORK}/forwards`;

/** Incus' REST API, as far as the driver uses it. */
export class RestApi {
  readonly instances: InstanceApi;
  readonly #cluster: Cluster;
  readonly #storage: StorageApi;
  readonly #forwards: ForwardApi;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.instances = new InstanceApi(cluster);
    this.#storage = new StorageApi(cluster);
    this.#forwards = new ForwardApi(cluster);
  }

  /** @throws {Refusal} */
  async answer(sent: Sent): Promise<Reply> {
    this.#cluster.assertQuorum();
    const { path } = sent;
    if (path.startsWith('/1.0/instances')) return this.#ofInstance(sent);
    if (path.startsWith(VOLUMES)) return this.#ofVolume(sent);
    if (path.startsWith(FORWARDS)) return this.#ofForward(sent);
    if (path === `/1.0/storage-pools/${POOL}/volumes/image/${IMAGE}`) return this.#storage.removeImage(sent);
    if (path.startsWith('/1.0/operations')) return this.#operations(path.split('/')[3]);
    return this.#read(sent);
  }

  #ofInstance(sent: Sent): Promise<Reply> {
    const { method, path } = sent;
    const [, , , name, part] = path.split('/');
    if (name === undefined) return method === 'GET' ? this.instances.list(sent) : this.instances.make(sent);
    if (part === 'state') return this.instances.setPower(name, sent);
    if (method === 'GET') return this.instances.read(name, sent);
    return method === 'DELETE' ? this.instances.remove(name, sent) : this.instances.change(name, sent);
  }

  async #ofVolume(sent: Sent): Promise<Reply> {
    const { method, path } = sent;
    const name = path.slice(VOLUMES.length + 1);
    if (name === '') return method === 'GET' ? this.#storage.list() : this.#storage.make(sent);
    if (method === 'GET') return this.#storage.read(name, sent);
    return method === 'DELETE' ? this.#storage.remove(name, sent) : this.#storage.change(name, sent);
  }

  async #ofForward(sent: Sent): Promise<Reply> {
    const { method, path } = sent;
    const listen = path.slice(FORWARDS.length + 1);
    if (method === 'GET') return this.#forwards.list();
    if (method === 'POST') return this.#forwards.make(sent);
    return method === 'DELETE' ? this.#forwards.remove(listen, sent) : this.#forwards.replace(listen, sent);
  }

  async #operations(id: string | undefined): Promise<Reply> {
    const cluster = this.#cluster;
    if (id === undefined) {
      await cluster.reachAll();
      const shown = [...cluster.operations.values()].filter(({ member }) => !cluster.isOffline(member));
      return { metadata: { all: shown.map(showOperation) } };
    }
    const operation = cluster.operations.get(id);
    if (operation === undefined) throw new Refusal(404, 'Operation not found');
    await cluster.reach(operation.member);
    return { metadata: showOperation(operation) };
  }

  async #read(sent: Sent): Promise<Reply> {
    const { path, query } = sent;
    const cluster = this.#cluster;
    switch (path) {
      case '/1.0': {
        const [member] = cluster.members;
        const environment = {
          server_clustered: cluster.isClustered,
          server_name: member?.name,
          server_version: '6.0.4',
        };
        return { metadata: { api_extensions: [], auth: 'trusted', environment } };
      }
      case '/1.0/cluster/members':
        return {
          metadata: cluster.members.map((member) => this.#member(member.name, cluster.isOffline(member))),
        };
      case '/1.0/resources':
        await cluster.reach(cluster.member(query['target']));
        return { metadata: { cpu: { total: 16 }, memory: { total: 64 * GIB } } };
      case `/1.0/storage-pools/${POOL}`:
        return { metadata: { driver: cluster.poolDriver, status: 'Created' } };
      case `/1.0/storage-pools/${POOL}/resources`:
        await cluster.reach(cluster.member(query['target']));
        return { metadata: { space: { total: 1_000 * GIB } } };
      case '/1.0/images/aliases/ubuntu-24.04':
        return { metadata: { target: IMAGE } };
      case `/1.0/images/${IMAGE}`:
        return { metadata: {} };
      case `/1.0/projects/${PROJECT}`:
        return this.#project(sent);
    }
    throw new Refusal(404, 'Not found');
  }

  /** A PATCH drops the keys that it does not name, as Incus' does: its fault. */
  #project({ method, body, match }: Sent): Reply {
    const { project } = this.#cluster;
    const etag = tagOf(project);
    if (method === 'GET') return { metadata: { config: project, description: 'of Berth' }, etag };
    if (match !== undefined && match !== etag) throw new Refusal(412, "ETag doesn't match");
    const changed = Object.keys({ ...project, ...body.config }).filter(
      (key) => body.config?.[key] !== project[key],
    );
    if (changed.some((key) => key.startsWith('features.')))
      throw new Refusal(400, "You can't change the features of the default project");
    this.#cluster.project = { ...body.config };
    return {};
  }

  #member(name: string, isOffline: boolean): object {
    return {
      server_name: name,
      ...(isOffline
        ? { status: 'Offline', message: 'No heartbeat for 20s' }
        : { status: 'Online', message: 'Fully operational' }),
      roles: ['database'],
      groups: ['default'],
    };
  }
}

function showOperation({ id, createdAt, description, status, resources, error, member }: Operation): object {
  return {
    ...{ id, created_at: createdAt, description, status_code: status, resources, location: member.name },
    err: error ?? '',
  };
}
