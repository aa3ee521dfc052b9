import { createHash } from 'node:crypto';
import { type Doer, READ_ONLY } from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import {
  type Cluster,
  type Config,
  type Devices,
  EMPTY,
  type Instance,
  Interrupted,
  PROJECT,
  volumesOf,
} from './cluster.ts';

/** A request, after it was read. */
export interface Sent {
  method: string;
  path: string;
  query: Readonly<Record<string, string>>;
  match: string | undefined;
  body: Body;
  by: Doer;
}

interface Body {
  name?: string;
  action?: string;
  force?: boolean;
  timeout?: number;
  config?: Config;
  devices?: Devices;
  source?: { type: string; name: string; location: string };
  listen_address?: string;
  description?: string;
  ports?: never[];
}

export interface Reply {
  metadata?: unknown;
  etag?: string;
  /** The id of what goes on. */
  operation?: string;
}

export const tagOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex');
export const pathOf = (name: string): string => `/1.0/instances/${name}?project=${PROJECT}`;
const NEVER = '0001-01-01T00:00:00Z';

/** Instances, as Incus' REST API has them. */
export class InstanceApi {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async list({ query }: Sent): Promise<Reply> {
    const { instances } = this.#cluster;
    const { recursion } = query;
    if (recursion === undefined) return { metadata: [...instances.keys()].map(pathOf) };
    if (instances.size > 0) await this.#cluster.reachAll();
    return { metadata: [...instances.values()].map((one) => this.#show(one, recursion === '2')) };
  }

  async read(name: string, { query }: Sent): Promise<Reply> {
    const instance = this.#find(name);
    if (this.#cluster.isOffline(instance.member))
      throw new Refusal(500, 'Failed to connect to the cluster member');
    await this.#cluster.reach(instance.member);
    this.#assertThere(instance);
    return { metadata: this.#show(instance, query['recursion'] === '1'), etag: this.#tag(instance) };
  }

  async make({ body, query, by }: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const { name = '', config = {}, devices = {} } = body;
    const member = cluster.member(query['target']);
    await cluster.reach(member);
    if (cluster.instances.has(name)) throw new Refusal(400, `Instance "${name}" already exists`);
    const operation = cluster.begin(
      'Creating instance',
      member,
      { instances: [pathOf(name)] },
      async (isStill) => {
        await cluster.takes(400, 5_000);
        isStill();
        if (cluster.instances.has(name)) throw new Refusal(400, `Instance "${name}" already exists`);
        const instance = this.#record({ name, member, config, devices });
        cluster.observe(by);
        try {
          await this.#unpack(instance, isStill);
          if (member.refusal !== undefined)
            throw new Refusal(500, `Failed creating instance "${name}": ${member.refusal}`);
          cluster.mayFail('Failed creating instance from image: write failed');
        } catch (error) {
          // Incus takes back what it has made of it.
          if (!(error instanceof Interrupted) && cluster.instances.get(name) === instance)
            cluster.instances.delete(name);
          cluster.observe('a person');
          throw error;
        }
      },
    );
    return { operation };
  }

  #record(of: Pick<Instance, 'name' | 'member' | 'config' | 'devices'>): Instance {
    const uuid = this.#cluster.id();
    const instance: Instance = {
      ...{ name: of.name, member: of.member, devices: { ...of.devices }, uuid },
      config: { ...of.config, 'volatile.uuid': uuid, 'volatile.base_image': IMAGE },
      createdAt: this.#cluster.nowText(),
      startedAt: NEVER,
      isRunning: false,
      ip: undefined,
      lastIp: undefined,
      disk: { content: EMPTY },
      isWhole: false,
      isCopy: false,
      movedFrom: undefined,
      movedTo: undefined,
      isProtected: false,
      busy: 'create',
      last: Promise.resolve(),
    };
    this.#cluster.instances.set(of.name, instance);
    return instance;
  }

  async #unpack(instance: Instance, isStill: () => void): Promise<void> {
    const { member } = instance;
    if (member.image === 'missing') {
      member.image = 'unpacking';
      await this.#cluster.takes(8_000, 60_000);
      isStill();
      member.image = 'whole';
    }
    await this.#cluster.takes(2_000, 30_000);
    isStill();
    instance.isWhole = member.image !== 'broken';
    instance.busy = undefined;
  }

  /** PATCH at once, PUT in the background; one after another, and each only if it reads as it did. */
  async change(name: string, sent: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const instance = this.#find(name);
    await cluster.reach(instance.member);
    const isPut = sent.method === 'PUT';
    const turn = instance.last;
    const { promise, resolve } = Promise.withResolvers<void>();
    instance.last = promise;
    const apply = (): void => {
      this.#assertThere(instance);
      const { config = {}, devices = {} } = sent.body;
      instance.config = withoutEmpty(isPut ? { ...config } : { ...instance.config, ...config });
      instance.devices = isPut ? { ...devices } : { ...instance.devices, ...devices };
      cluster.observe(sent.by);
    };
    try {
      await turn;
      this.#assertThere(instance);
      if (instance.busy === 'migrate')
        throw new Refusal(400, 'Instance is busy running a "migrate" operation');
      if (sent.match !== undefined && sent.match !== this.#tag(instance))
        throw new Refusal(412, "Precondition failed: ETag doesn't match");
      this.#assertVolumes(instance, sent.body.devices ?? {});
      await cluster.takes(100, 1_000);
      if (!isPut) apply();
    } catch (error) {
      resolve();
      throw error;
    }
    if (!isPut) {
      resolve();
      return {};
    }
    const resources = { instances: [pathOf(name)] };
    const operation = cluster.begin('Updating instance', instance.member, resources, async (isStill) => {
      try {
        await cluster.takes(300, 4_000);
        isStill();
        apply();
      } finally {
        resolve();
      }
    });
    return { operation };
  }

  async setPower(name: string, { body, by }: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const instance = this.#find(name);
    await cluster.reach(instance.member);
    const { action = '', force = false, timeout = 30 } = body;
    const doing = { start: 'Starting', stop: 'Stopping', restart: 'Restarting' }[action] ?? 'Changing';
    const resources = { instances: [pathOf(name)] };
    const operation = cluster.begin(`${doing} instance`, instance.member, resources, (isStill) =>
      this.occupied(instance, action, async () => {
        if (action === 'start') await this.start(instance, isStill, by);
        else if (action === 'stop') await this.#stop(instance, force ? undefined : timeout, isStill, by);
        else {
          await this.#stop(instance, undefined, isStill, by);
          await this.start(instance, isStill, by);
        }
      }),
    );
    return { operation };
  }

  /** Nothing else is done with it meanwhile. */
  async occupied(instance: Instance, what: string, work: () => Promise<void>): Promise<void> {
    this.#assertThere(instance);
    if (instance.busy !== undefined)
      throw new Refusal(400, `Instance is busy running a "${instance.busy}" operation`);
    instance.busy = what;
    try {
      await work();
    } finally {
      if (instance.busy === what) instance.busy = undefined;
    }
  }

  async start(instance: Instance, isStill: () => void, by: Doer): Promise<void> {
    const cluster = this.#cluster;
    if (instance.isRunning) throw new Refusal(400, 'The instance is already running');
    await cluster.takes(2_000, 20_000);
    isStill();
    if (!instance.isWhole || instance.disk === undefined)
      throw new Refusal(400, 'Failed to exec "/sbin/init"');
    cluster.mayFail('Failed to run: /opt/incus/bin/incusd forkstart: exit status 1');
    instance.isRunning = true;
    instance.startedAt = cluster.nowText();
    instance.config = { ...instance.config, 'volatile.last_state.power': 'RUNNING' };
    cluster.observe(by);
    const { startedAt } = instance;
    void cluster.takes(3_000, 15_000).then(() => {
      if (!instance.isRunning || instance.startedAt !== startedAt) return;
      instance.ip = this.#lease(instance);
      instance.lastIp = instance.ip;
      cluster.observe(by);
    });
  }

  /** `withinS`: as its guest shuts down by itself; undefined: it is switched off. */
  async #stop(instance: Instance, withinS: number | undefined, isStill: () => void, by: Doer): Promise<void> {
    const cluster = this.#cluster;
    if (!instance.isRunning) throw new Refusal(400, 'The instance is already stopped');
    if (withinS === undefined) await cluster.takes(1_000, 10_000);
    else if (cluster.chance.happens(0.15)) {
      await cluster.sleep(withinS * 1_000);
      isStill();
      throw new Refusal(500, 'Failed shutting down instance, status is "Running": context deadline exceeded');
    } else await cluster.takes(5_000, withinS * 1_000);
    isStill();
    this.switchOff(instance);
    cluster.observe(by);
  }

  switchOff(instance: Instance): void {
    instance.isRunning = false;
    instance.startedAt = NEVER;
    instance.ip = undefined;
    instance.config = { ...instance.config, 'volatile.last_state.power': 'STOPPED' };
  }

  /** First the disk, then the record. */
  async remove(name: string, { by }: Sent): Promise<Reply> {
    const cluster = this.#cluster;
    const instance = this.#find(name);
    await cluster.reach(instance.member);
    this.#assertThere(instance);
    if (instance.isRunning) throw new Refusal(400, 'Instance is running');
    const resources = { instances: [pathOf(name)] };
    const operation = cluster.begin('Deleting instance', instance.member, resources, (isStill) =>
      this.occupied(instance, 'delete', async () => {
        if (instance.isProtected) throw new Refusal(400, 'Instance is protected');
        if (instance.member.refusal === READ_ONLY) instance.member.write();
        await cluster.takes(500, 60_000);
        isStill();
        instance.disk = undefined;
        cluster.observe(by);
        await cluster.takes(500, 60_000);
        isStill();
        if (cluster.instances.get(instance.name) === instance) cluster.instances.delete(instance.name);
        cluster.observe(by);
      }),
    );
    return { operation };
  }

  #find(name: string): Instance {
    const found = this.#cluster.instances.get(name);
    if (found === undefined) throw new Refusal(404, 'Instance not found');
    return found;
  }

  #assertThere(instance: Instance): void {
    if (this.#cluster.instances.get(instance.name) !== instance) throw new Refusal(404, 'Instance not found');
  }

  #assertVolumes(instance: Instance, devices: Devices): void {
    const added = Object.entries(devices).filter(([device]) => instance.devices[device] === undefined);
    for (const [device, { source }] of added) {
      if (source === undefined) continue;
      const isThere = volumesOf(this.#cluster, { ...instance, devices: { one: { source } } }).length > 0;
      if (!isThere)
        throw new Refusal(
          400,
          `Invalid devices: Device validation failed for "${device}": Storage volume not found`,
        );
    }
  }

  /** The lowest that is free. One that is off keeps its own. */
  #lease(instance: Instance): string {
    const { instances, hasForwards } = this.#cluster;
    const isNear = (one: Instance): boolean =>
      one !== instance && (!hasForwards || one.member === instance.member);
    const taken = new Set(
      [...instances.values()].filter(isNear).flatMap(({ ip, lastIp }) => (ip ?? lastIp) || []),
    );
    const { lastIp } = instance;
    if (lastIp !== undefined && !taken.has(lastIp)) return lastIp;
    for (let last = 2; ; last++) if (!taken.has(`10.0.0.${last}`)) return `10.0.0.${last}`;
  }

  #tag({ config, devices }: Instance): string {
    return tagOf([config, devices]);
  }

  #show(instance: Instance, hasState: boolean): object {
    const { name, member, config, devices, createdAt, isRunning, startedAt, ip } = instance;
    const known = { name, project: PROJECT, type: 'container', location: member.name };
    if (this.#cluster.isClustered && this.#cluster.isOffline(member))
      return {
        ...known,
        ...{ status: 'Error', status_code: 112, created_at: NEVER },
        ...{ config: null, devices: null, expanded_config: null, expanded_devices: null },
      };
    const code = isRunning ? 103 : 102;
    const addresses = ip === undefined ? [] : [{ family: 'inet', address: ip, scope: 'global' }];
    return {
      ...known,
      ...{ status: isRunning ? 'Running' : 'Stopped', status_code: code, created_at: createdAt },
      ...{ config, devices, expanded_config: config, expanded_devices: devices },
      ...(hasState && {
        state: {
          status_code: code,
          started_at: startedAt,
          network: isRunning ? { eth0: { addresses } } : null,
        },
      }),
    };
  }
}

/** The fingerprint of what machines are made from. */
export const IMAGE = 'f'.repeat(64);

/** A setting that is set to nothing is unset. */
export function withoutEmpty(config: Config): Config {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== '' && value !== null));
}
