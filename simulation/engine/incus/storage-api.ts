import { Refusal } from '../surroundings.ts';
import {
  type Cluster,
  EMPTY,
  type Forward,
  Interrupted,
  type Member,
  POOL,
  PROJECT,
  usersOf,
  type Volume,
  volumeAt,
} from './cluster.ts';
import { type Reply, type Sent, tagOf, withoutEmpty } from './instance-api.ts';

const pathOf = (name: string): string =>
  `/1.0/storage-pools/${POOL}/volumes/custom/${name}?project=${PROJECT}`;

/** The volume of a trial write, which is removed at once. */
const TRIAL = 'berth-trial-write';

/** Custom volumes, of which each is on one member, and unpacked images. */
export class StorageApi {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  list(): Reply {
    return { metadata: this.#cluster.volumes.map((one) => this.#show(one)) };
  }

  async read(name: string, { query }: Sent): Promise<Reply> {
    const volume = await this.#find(name, query);
    return { metadata: this.#show(volume), etag: tagOf(volume.config) };
  }

  async make(sent: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const { name = '', source } = sent.body;
    const member = cluster.member(sent.query['target']);
    await cluster.reach(member);
    if (name === TRIAL) return { operation: this.#import(member) };
    member.write();
    if (source !== undefined) return this.#copy(sent, member, source);
    await cluster.takes(1_000, 60_000);
    this.#assertFree(member, name);
    this.#record(sent, member);
    return {};
  }

  #import(member: Member): string {
    return this.#cluster.begin('Importing storage volume', member, null, async () => member.write());
  }

  async #copy(sent: Sent, member: Member, source: { name: string; location: string }): Promise<Reply> {
    const cluster = this.#cluster;
    const { name = '' } = sent.body;
    const from = cluster.member(cluster.isClustered ? source.location : undefined);
    await cluster.reach(from);
    const original = volumeAt(cluster, from, source.name);
    if (original === undefined) throw new Refusal(404, 'Storage volume not found');
    this.#assertFree(member, name);
    const resources = { storage_volumes: [pathOf(name)] };
    const operation = cluster.begin('Copying storage volume', member, resources, async (isStill) => {
      await cluster.takes(300, 3_000);
      isStill();
      this.#assertFree(member, name);
      const copy = this.#record(sent, member);
      const { content } = original.bytes;
      try {
        await cluster.takes(10_000, 120_000);
        isStill();
        if (!cluster.volumes.includes(original))
          throw new Refusal(500, 'Failed copying volume: it is not there');
        cluster.mayFail('Failed copying volume: rsync: connection unexpectedly closed');
      } catch (error) {
        if (!(error instanceof Interrupted)) this.#drop(copy);
        cluster.observe('a person');
        throw error;
      }
      copy.bytes.content = content;
      cluster.observe(sent.by);
    });
    return { operation };
  }

  #record({ body, by }: Sent, member: Member): Volume {
    const { name = '', config = {} } = body;
    const createdAt = this.#cluster.nowText();
    const volume: Volume = { name, member, config: { ...config }, createdAt, bytes: { content: EMPTY } };
    this.#cluster.volumes.push(volume);
    this.#cluster.observe(by);
    return volume;
  }

  async change(name: string, { query, match, body, by }: Sent): Promise<Reply> {
    const volume = await this.#find(name, query);
    await this.#cluster.takes(100, 2_000);
    if (!this.#cluster.volumes.includes(volume)) throw new Refusal(404, 'Storage volume not found');
    if (match !== undefined && match !== tagOf(volume.config))
      throw new Refusal(412, "Precondition failed: ETag doesn't match");
    volume.config = withoutEmpty({ ...volume.config, ...body.config });
    this.#cluster.observe(by);
    return {};
  }

  /** Its caller may be gone long before the end: first the bytes go, then the record. */
  async remove(name: string, { query, by }: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const volume = await this.#find(name, query);
    const { ends } = volume.member;
    if (usersOf(cluster, volume).length > 0) throw new Refusal(400, 'The storage volume is still in use');
    await cluster.takes(500, 90_000);
    if (volume.member.ends !== ends) throw new Refusal(500, 'EOF');
    volume.bytes.content = EMPTY;
    cluster.observe(by);
    await cluster.takes(500, 90_000);
    if (volume.member.ends !== ends) throw new Refusal(500, 'EOF');
    this.#drop(volume);
    cluster.observe(by);
    return {};
  }

  async removeImage({ query }: Sent): Promise<Reply> {
    const member = this.#cluster.member(query['target']);
    await this.#cluster.reach(member);
    if (member.image === 'missing') throw new Refusal(404, 'Storage volume not found');
    member.image = 'missing';
    return {};
  }

  #assertFree(member: Member, name: string): void {
    if (volumeAt(this.#cluster, member, name) !== undefined)
      throw new Refusal(409, 'Volume by that name already exists');
  }

  async #find(name: string, query: Sent['query']): Promise<Volume> {
    const member = this.#cluster.member(query['target']);
    await this.#cluster.reach(member);
    const volume = volumeAt(this.#cluster, member, name);
    if (volume === undefined) throw new Refusal(404, 'Storage volume not found');
    return volume;
  }

  #drop(volume: Volume): void {
    const { volumes } = this.#cluster;
    const index = volumes.indexOf(volume);
    if (index >= 0) volumes.splice(index, 1);
  }

  #show(volume: Volume): object {
    const { name, member, config, createdAt } = volume;
    return {
      ...{ name, type: 'custom', content_type: 'filesystem', created_at: createdAt },
      ...{ location: member.name, config },
      used_by: usersOf(this.#cluster, volume).map((one) => `/1.0/instances/${one.name}?project=${PROJECT}`),
    };
  }
}

/** Forwarded ports: one object for each address, which a PUT replaces whatever it was. */
export class ForwardApi {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  list(): Reply {
    const { isClustered, forwards } = this.#cluster;
    const shown = forwards.map(({ member, listen, description, ports }) => ({
      ...{ listen_address: listen, description, config: {}, ports },
      ...(isClustered && { location: member.name }),
    }));
    return { metadata: shown };
  }

  async make({ query, body }: Sent): Promise<Reply> {
    const member = this.#cluster.member(query['target']);
    await this.#cluster.reach(member);
    const { listen_address: listen = '', description = '', ports = [] } = body;
    if (this.#at(member, listen) !== undefined)
      throw new Refusal(400, 'A forward for that listen address already exists');
    assertDistinct(ports);
    this.#cluster.forwards.push({ member, listen, description, ports });
    return {};
  }

  async replace(listen: string, { query, body }: Sent): Promise<Reply> {
    const forward = await this.#find(listen, query);
    assertDistinct(body.ports ?? []);
    forward.ports = body.ports ?? [];
    forward.description = body.description ?? '';
    return {};
  }

  async remove(listen: string, { query }: Sent): Promise<Reply> {
    const forward = await this.#find(listen, query);
    this.#cluster.forwards.splice(this.#cluster.forwards.indexOf(forward), 1);
    return {};
  }

  async #find(listen: string, query: Sent['query']): Promise<Forward> {
    const member = this.#cluster.member(query['target']);
    await this.#cluster.reach(member);
    const forward = this.#at(member, listen);
    if (forward === undefined) throw new Refusal(404, 'Network forward not found');
    return forward;
  }

  #at(member: Member, listen: string): Forward | undefined {
    return this.#cluster.forwards.find((one) => one.member === member && one.listen === listen);
  }
}

function assertDistinct(ports: readonly { listen_port: string }[]): void {
  if (new Set(ports.map(({ listen_port: port }) => port)).size < ports.length)
    throw new Refusal(400, 'Duplicate listen port for protocol "tcp"');
}
