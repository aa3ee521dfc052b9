import { z } from 'zod';
import type { HostAnswers } from '../../orchestrator/model/platform-driver.ts';
import type { IncusClient } from './client.ts';
import { IncusRefusal, isConflict, isNotFound } from './errors.ts';

/** Incus' status code of a stopping instance. */
const STOPPING = 107;
/** Incus' location name for the host of a daemon without a cluster. */
export const SINGLE = 'none';

// The parts of Incus' answers that the driver reads: https://linuxcontainers.org/incus/docs/main/rest-api/

const configSchema = z
  .record(z.string(), z.string())
  .nullish()
  .transform((config) => config ?? {});
const devicesSchema = z
  .record(z.string(), z.record(z.string(), z.string()))
  .nullish()
  .transform((devices) => devices ?? {});

const stateSchema = z.object({
  status_code: z.number(),
  started_at: z.string().optional(),
  /** The use of each disk device that Incus can measure. */
  disk: z.record(z.string(), z.unknown()).nullish(),
  network: z
    .record(
      z.string(),
      z.object({
        addresses: z
          .array(z.object({ family: z.string(), address: z.string(), scope: z.string() }))
          .nullish(),
      }),
    )
    .nullish(),
});

const projectStateSchema = z.object({
  resources: z.record(z.string(), z.object({ Limit: z.number(), Usage: z.number() })).nullish(),
});

const instanceSchema = z.object({
  name: z.string(),
  project: z.string().optional(),
  type: z.string(),
  /** Incus' code: 102 stopped, 103 running, 112 error (its member cannot tell). */
  status_code: z.number(),
  created_at: z.string(),
  /** The cluster member that hosts it; `none` without a cluster. */
  location: z.string(),
  config: configSchema,
  devices: devicesSchema,
  expanded_config: configSchema,
  expanded_devices: devicesSchema,
  state: stateSchema.nullish(),
  /** Only in the answer about one instance. Incus removes both with the instance. */
  snapshots: z.array(z.object({ name: z.string() })).nullish(),
  backups: z.array(z.object({ name: z.string() })).nullish(),
});
export interface Instance extends z.infer<typeof instanceSchema> {
  /** Tag of its configuration and devices; only set if it was read individually. */
  etag?: string | undefined;
}

const volumeSchema = z.object({
  name: z.string(),
  type: z.string(),
  content_type: z.string().optional(),
  created_at: z.string(),
  location: z.string(),
  config: configSchema,
  used_by: z.array(z.string()).nullish(),
});
export type Volume = z.infer<typeof volumeSchema>;

const volumeStateSchema = z
  .object({ usage: z.object({ used: z.number().nonnegative().optional().catch(undefined) }).nullish() })
  .nullish();

const operationSchema = z.object({
  created_at: z.string(),
  id: z.string(),
  description: z.string(),
  /** 200 means done, 400 and above failed or cancelled, any lower code running. */
  status_code: z.number(),
  resources: z.record(z.string(), z.array(z.string()).nullish()).nullish(),
  err: z.string().optional(),
  /** The member that it runs on. */
  location: z.string().optional(),
});
export type Operation = z.infer<typeof operationSchema>;

const memberSchema = z.object({
  server_name: z.string(),
  status: z.string(),
  message: z.string(),
  /** `database` means that it votes in the cluster's database. */
  roles: z.array(z.string()).nullish(),
  groups: z.array(z.string()).nullish(),
});
export type Member = z.infer<typeof memberSchema>;

const portSchema = z.object({
  description: z.string(),
  protocol: z.string(),
  listen_port: z.string(),
  target_port: z.string().optional(),
  target_address: z.string(),
});
export type ForwardPort = z.infer<typeof portSchema>;

const forwardSchema = z.object({
  listen_address: z.string(),
  description: z.string(),
  config: configSchema,
  ports: z
    .array(portSchema)
    .nullish()
    .transform((ports) => ports ?? []),
  location: z.string().optional(),
});
export type Forward = z.infer<typeof forwardSchema>;

const cardSchema = z.object({
  pci_address: z.string().optional(),
  vendor_id: z.string().optional(),
  product_id: z.string().optional(),
  product: z.string().optional(),
});
export type Card = z.infer<typeof cardSchema>;

const resourcesSchema = z.object({
  cpu: z.object({ total: z.number() }),
  memory: z.object({ total: z.number() }),
  gpu: z
    .object({ cards: z.array(cardSchema).nullish() })
    .nullish()
    .transform((gpu) => gpu?.cards ?? []),
});
export type Resources = z.infer<typeof resourcesSchema>;

const serverSchema = z.object({
  api_extensions: z.array(z.string()),
  auth: z.string(),
  environment: z.object({
    server_clustered: z.boolean(),
    server_name: z.string(),
    server_version: z.string(),
    driver: z.string().optional(),
  }),
});

const poolSchema = z.object({ driver: z.string(), status: z.string(), config: configSchema });

export interface Found<T> {
  value: T;
  etag: string | undefined;
}

/**
 * Reads whose answers are validated. Each throws as {@link IncusClient.send} does, and a ZodError for an invalid
 * answer.
 */
export class IncusApi {
  readonly client: IncusClient;

  constructor(client: IncusClient) {
    this.client = client;
  }

  async server() {
    return serverSchema.parse((await this.client.get('/1.0')).metadata);
  }

  /** An instance with its state. Undefined if no instance has this name. */
  async instance(name: string, withinMs?: number): Promise<Instance | undefined> {
    const path = `/1.0/instances/${name}`;
    try {
      return withEtag(await this.#read(path, { recursion: '1' }, instanceSchema, withinMs));
    } catch (error) {
      if (!hasJustEnded(error)) throw error;
      const bare = withEtag(await this.#read(path, {}, instanceSchema, withinMs));
      return bare && { ...bare, status_code: STOPPING };
    }
  }

  /** Everything that a PUT of the instance must contain, with its tag. */
  async instanceToReplace(name: string): Promise<Found<Record<string, unknown>> | undefined> {
    return this.#read(`/1.0/instances/${name}`, {}, z.record(z.string(), z.unknown()));
  }

  /** Reads all instances in one call, or in one call each if a machine ends during the first. */
  async instances(): Promise<Instance[]> {
    try {
      return await this.#instances('2');
    } catch (error) {
      if (!hasJustEnded(error)) throw error;
      const known = await this.instancesWithoutState();
      const each = await Promise.all(known.map(({ name }) => this.instance(name)));
      return each.filter((instance) => instance !== undefined);
    }
  }

  async instancesWithoutState(): Promise<Instance[]> {
    return this.#instances('1');
  }

  /**
   * The instances of other projects, which take up capacity too, in the form of {@link instancesWithoutState}. If there
   * are none, no member is asked.
   */
  async instancesOfOthers(): Promise<Instance[]> {
    const all = { 'all-projects': 'true' };
    const paths = z.array(z.string()).parse((await this.client.get('/1.0/instances', all)).metadata);
    if (paths.every((path) => projectIn(path) === this.client.project)) return [];
    const { metadata } = await this.client.get('/1.0/instances', { recursion: '1', ...all });
    return z
      .array(instanceSchema)
      .parse(metadata)
      .filter(({ project }) => project !== this.client.project);
  }

  /** The names in Incus' database; no member is asked. */
  async instanceNames(): Promise<string[]> {
    const { metadata } = await this.client.get('/1.0/instances');
    const names = z.array(z.string()).parse(metadata).map(nameIn);
    if (names.length === 0) await this.assertProject();
    return names;
  }

  async #instances(recursion: string): Promise<Instance[]> {
    const { metadata } = await this.client.get('/1.0/instances', { recursion });
    const instances = z.array(instanceSchema).parse(metadata);
    if (instances.length === 0) await this.assertProject();
    return instances;
  }

  /**
   * Checks that the project exists. Incus lists a missing project as empty and finds no instance in it.
   *
   * @throws {Error} if the project does not exist
   */
  async assertProject(): Promise<void> {
    const { project } = this.client;
    try {
      await this.client.get(`/1.0/projects/${project}`);
    } catch (error) {
      if (!(error instanceof IncusRefusal && error.status === 404)) throw error;
      throw new Error(`Incus has no project ${project}`, { cause: error });
    }
  }

  /** The configuration of the project. @throws also if the project does not exist */
  async projectConfig(): Promise<Readonly<Record<string, string>>> {
    return (await this.#project()).config;
  }

  /**
   * Sets these keys of the project. It replaces the whole configuration: Incus 6.0 takes a PATCH that does not name the
   * project's features for their removal. Another server may change the project meanwhile: then it tries again.
   */
  async setProjectConfig(keys: Record<string, string>, tries = 4): Promise<void> {
    const { config, description, etag } = await this.#project();
    const body = { description, config: { ...config, ...keys } };
    const sent = this.client.send('PUT', `/1.0/projects/${this.client.project}`, { body, etag });
    await sent.catch((error) => {
      if (tries <= 1 || !isConflict(error)) throw error;
      return this.setProjectConfig(keys, tries - 1);
    });
  }

  /** How much of each limit of the project is left. Without those that are not set. */
  async projectRoom(): Promise<Readonly<Record<string, number>>> {
    const found = await this.#read(`/1.0/projects/${this.client.project}/state`, {}, projectStateSchema);
    const set = Object.entries(found?.value.resources ?? {}).filter(([, { Limit }]) => Limit >= 0);
    return Object.fromEntries(set.map(([name, { Limit, Usage }]) => [name, Math.max(0, Limit - Usage)]));
  }

  async #project() {
    const { metadata, etag } = await this.client.get(`/1.0/projects/${this.client.project}`);
    return { ...z.object({ config: configSchema, description: z.string() }).parse(metadata), etag };
  }

  /** An image by alias or fingerprint. Undefined if it does not exist. */
  async image(name: string): Promise<unknown> {
    const alias = await this.#read(
      `/1.0/images/aliases/${encodeURIComponent(name)}`,
      {},
      z.object({ target: z.string() }),
    );
    const fingerprint = encodeURIComponent(alias?.value.target ?? name);
    return (await this.#read(`/1.0/images/${fingerprint}`, {}, z.unknown()))?.value;
  }

  async volumes(pool: string): Promise<Volume[]> {
    const { metadata } = await this.client.get(`/1.0/storage-pools/${pool}/volumes/custom`, {
      recursion: '1',
    });
    return z.array(volumeSchema).parse(metadata);
  }

  /** One volume, with the tag that a change must send. */
  async volume(pool: string, name: string, location: string): Promise<Found<Volume> | undefined> {
    const path = `/1.0/storage-pools/${pool}/volumes/custom/${name}`;
    return this.#read(path, targetOf(location), volumeSchema);
  }

  /** The bytes that a volume takes. Undefined if its pool does not know, or if there is no such volume. */
  async usedBytes(pool: string, { name, location }: Volume): Promise<number | undefined> {
    const path = `/1.0/storage-pools/${pool}/volumes/custom/${name}/state`;
    const state = await this.#read(path, targetOf(location), volumeStateSchema);
    return state?.value?.usage?.used;
  }

  async operation(id: string): Promise<Operation | undefined> {
    return (await this.#read(`/1.0/operations/${id}`, {}, operationSchema))?.value;
  }

  /** The operations of all members that answer, including those that ended seconds ago. */
  async operations(): Promise<Operation[]> {
    const { metadata } = await this.client.get('/1.0/operations', { recursion: '1' });
    const byStatus = z.record(z.string(), z.array(operationSchema)).nullish().parse(metadata);
    return Object.values(byStatus ?? {}).flat();
  }

  /** The cluster's members; empty without a cluster. */
  async members(): Promise<Member[]> {
    const { environment } = await this.server();
    if (!environment.server_clustered) return [];
    const { metadata } = await this.client.get('/1.0/cluster/members', { recursion: '1' });
    return z.array(memberSchema).parse(metadata);
  }

  /**
   * The hosts whose instances Incus knows. Its database includes those of an offline member, but not those of a
   * member that was removed by force.
   */
  async hosts(): Promise<HostAnswers> {
    const members = await this.members();
    return {
      answered: members.length === 0 ? [SINGLE] : members.map(({ server_name: name }) => name),
      silent: [],
    };
  }

  async resources(member: string | undefined): Promise<Resources> {
    return resourcesSchema.parse((await this.client.get('/1.0/resources', targetOf(member))).metadata);
  }

  /** A pool on a member, with its size in bytes. */
  async pool(name: string, member: string | undefined) {
    const path = `/1.0/storage-pools/${name}`;
    const pool = poolSchema.parse((await this.client.get(path, targetOf(member))).metadata);
    const schema = z.object({ space: z.object({ total: z.number() }) });
    const { metadata } = await this.client.get(`${path}/resources`, targetOf(member));
    return { ...pool, bytes: schema.parse(metadata).space.total };
  }

  /** The forwards of all members. */
  async forwards(network: string): Promise<Forward[]> {
    const { metadata } = await this.client.get(`/1.0/networks/${network}/forwards`, { recursion: '1' });
    return z.array(forwardSchema).nullish().parse(metadata) ?? [];
  }

  async #read<T>(
    path: string,
    query: Record<string, string>,
    schema: z.ZodType<T>,
    withinMs?: number,
  ): Promise<Found<T> | undefined> {
    try {
      const { metadata, etag } = await this.client.get(path, query, withinMs);
      return { value: schema.parse(metadata), etag };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function withEtag(found: Found<Instance> | undefined): Instance | undefined {
  return found && { ...found.value, etag: found.etag };
}

/**
 * Whether the first process of a container has just ended, but the container is not yet shut down. Incus 6.0 then fails
 * to show it: it uses -1 as the process id.
 */
function hasJustEnded(error: unknown): boolean {
  return error instanceof IncusRefusal && error.message.startsWith('Invalid PID');
}

/** The name in a path such as `/1.0/instances/NAME?project=…`. */
function nameIn(path: string): string {
  return path.split('?')[0]?.split('/').at(-1) ?? '';
}

/** The project in a path. Incus omits it for the project `default`. */
function projectIn(path: string): string {
  return new URLSearchParams(path.split('?')[1]).get('project') ?? 'default';
}

export function targetOf(member: string | undefined): Record<string, string> {
  return member === undefined || member === SINGLE || member === '' ? {} : { target: member };
}
