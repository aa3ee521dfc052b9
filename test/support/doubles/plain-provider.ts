import { type OrchestratorClient, ProviderError } from '../../../src/client/orchestrator-client.ts';
import type { Configuration } from '../../../src/contract/configuration.ts';
import type { VolumeUsage } from '../../../src/contract/extensions.ts';
import type { CreateInstanceRequest, Instance, InstanceStatus } from '../../../src/contract/instance.ts';
import type { CreateVolumeRequest, Volume, VolumeLocation } from '../../../src/contract/volume.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { plainConfigurations } from '../rows/configurations.ts';
import { ProviderFaults } from './provider-faults.ts';

export interface PlainProviderOptions {
  configurations?: readonly Configuration[];
  volumeLocations?: readonly VolumeLocation[];
  /** Machines of each offer, in each region. A stopped one holds none. */
  capacity?: number;
  /** How long it takes until what was asked for is so. */
  bootMs?: number;
  stopMs?: number;
  startMs?: number;
  deleteMs?: number;
  restartMs?: number;
  volumeMs?: number;
  /** Whether a second instance of the same name gets a suffix (O: CreateInstanceRequest, `name`). */
  hasUniqueNames?: boolean;
  /** Whether a change of a volume is refused while another one is under way (O: `operation_in_progress`). */
  refusesOverlap?: boolean;
}

/** What comes next of itself. */
interface Pending<T> {
  at: number;
  apply: (target: T) => void;
}

interface Held<T> {
  value: T;
  pending: Pending<T>[];
}

const HOLDS_CAPACITY: readonly InstanceStatus[] = ['PROVISIONING', 'ONLINE', 'STOPPING'];

/** A provider in memory that keeps O: in truth. A test puts into `faults.plan` what goes wrong. */
export class PlainProvider {
  readonly faults: ProviderFaults;
  readonly client: OrchestratorClient;
  readonly configurations: Configuration[];
  readonly options: Required<PlainProviderOptions>;
  /** What each instance was made with. */
  readonly sshKeys = new Map<string, readonly string[]>();
  readonly #clock: Clock;
  readonly #instances = new Map<string, Held<Instance>>();
  readonly #volumes = new Map<string, Held<Volume>>();
  readonly #restarts = new Map<string, { since: number; until: number }>();
  #made = 0;

  constructor(clock: Clock, options: PlainProviderOptions = {}) {
    this.#clock = clock;
    this.options = {
      configurations: plainConfigurations,
      volumeLocations: [{ id: 'eu-one', name: 'EU One', types: ['ssd'], country_code: 'DE' }],
      capacity: Number.POSITIVE_INFINITY,
      bootMs: 45_000,
      stopMs: 5_000,
      startMs: 20_000,
      deleteMs: 5_000,
      restartMs: 60_000,
      volumeMs: 0,
      hasUniqueNames: true,
      refusesOverlap: false,
      ...options,
    };
    this.configurations = structuredClone([...this.options.configurations]);
    this.faults = new ProviderFaults(clock);
    this.client = plainProviderClient(this);
  }

  /** What it reports of the use of its volumes. */
  volumeUsage: VolumeUsage[] = [];

  /** All that exist, the oldest first. */
  get instances(): Instance[] {
    return [...this.#instances.keys()].flatMap((id) => this.#find(this.#instances, id)?.value ?? []);
  }

  get volumes(): Volume[] {
    return [...this.#volumes.keys()].flatMap((id) => this.#find(this.#volumes, id)?.value ?? []);
  }

  /** Sets fields of an instance at once, whether the change is legal or not. */
  set(id: string, fields: Partial<Instance>): void {
    const held = this.#instance(id);
    held.pending = [];
    Object.assign(held.value, fields, { updated_at: this.#at() });
  }

  /** It is gone without a trace: GET answers 404. */
  vanish(id: string): void {
    this.#instances.delete(id);
    for (const { value } of this.#volumes.values()) this.#detach(value, [id]);
  }

  /** Takes it back, as a provider does with a spot instance. */
  reclaim(id: string): void {
    this.delete(id);
  }

  /** Reads `status`, and after `ms` what it was before. */
  blink(id: string, status: InstanceStatus, ms: number): void {
    const held = this.#instance(id);
    const before = held.value.status;
    this.set(id, { status });
    this.#later(held, ms, (instance) => Object.assign(instance, { status: before }));
  }

  reprice(id: string, usdPerHour: number): void {
    this.set(id, { price_per_hour: usdPerHour });
  }

  free(configurationId: string, region: string): number {
    const held = this.instances.filter(
      (it) =>
        it.configuration_id === configurationId && it.region === region && HOLDS_CAPACITY.includes(it.status),
    );
    return this.options.capacity - held.length;
  }

  create(request: CreateInstanceRequest): Instance {
    const configuration = this.configurations.find(({ id }) => id === request.configuration_id);
    if (configuration === undefined || !configuration.regions.includes(request.region))
      throw refused(400, 'invalid_request');
    if (!configuration.available || this.free(configuration.id, request.region) < 1)
      throw refused(409, 'capacity_unavailable');
    // What is refused has made nothing.
    for (const volumeId of request.volume_ids ?? []) {
      this.getVolume(volumeId);
      this.#refuseOverlap(this.#volumes.get(volumeId));
    }
    const id = `i-${++this.#made}`;
    const value: Instance = {
      id,
      configuration_id: configuration.id,
      region: request.region,
      status: 'PROVISIONING',
      ...(request.name !== undefined && { name: this.#freeName(request.name) }),
      price_per_hour: configuration.spot_price_per_hour ?? configuration.price_per_hour,
      created_at: this.#at(),
      updated_at: this.#at(),
    };
    const held: Held<Instance> = { value, pending: [] };
    this.#instances.set(id, held);
    this.sshKeys.set(id, request.ssh_keys);
    const address = { public_ip: `192.0.2.${this.#made}`, ssh_port: 22, ssh_username: 'ubuntu' };
    this.#later(held, this.options.bootMs, (it) => Object.assign(it, { status: 'ONLINE', ...address }));
    for (const volumeId of request.volume_ids ?? []) this.attach(volumeId, [id]);
    return value;
  }

  get(id: string): Instance {
    return this.#instance(id).value;
  }

  delete(id: string): Instance | null {
    const held = this.#find(this.#instances, id);
    if (held === undefined) return null;
    if (held.value.status === 'DESTROYING') return held.value;
    this.set(id, { status: 'DESTROYING' });
    this.#later(held, this.options.deleteMs, () => this.vanish(id));
    return held.value;
  }

  stop(id: string): Instance {
    const held = this.#instance(id);
    if (held.value.status !== 'ONLINE') throw refused(409, 'invalid_state');
    this.set(id, { status: 'STOPPING' });
    this.#later(held, this.options.stopMs, (it) => Object.assign(it, { status: 'STOPPED' }));
    return held.value;
  }

  start(id: string): Instance {
    const held = this.#instance(id);
    if (held.value.status !== 'STOPPED') throw refused(409, 'invalid_state');
    if (this.free(held.value.configuration_id, held.value.region) < 1)
      throw refused(409, 'capacity_unavailable');
    if (held.pending.length === 0)
      this.#later(held, this.options.startMs, (it) => Object.assign(it, { status: 'ONLINE' }));
    return held.value;
  }

  restart(id: string): Instance {
    const { value } = this.#instance(id);
    if (value.status !== 'ONLINE') throw refused(409, 'invalid_state');
    const since = this.#clock.now();
    this.#restarts.set(id, { since, until: since + this.options.restartMs });
    return value;
  }

  restartStatus(id: string): { restarting: boolean; since?: string } {
    this.#instance(id);
    const restart = this.#restarts.get(id);
    if (restart === undefined || restart.until <= this.#clock.now()) return { restarting: false };
    return { restarting: true, since: new Date(restart.since).toISOString() };
  }

  createVolume(request: CreateVolumeRequest): Volume {
    if (!this.options.volumeLocations.some(({ id }) => id === request.region))
      throw refused(400, 'invalid_request');
    const { instance_ids: instanceIds = [], ...fields } = request;
    const id = `v-${++this.#made}`;
    const value: Volume = {
      ...fields,
      id,
      status: 'CREATING',
      attached_instance_ids: [],
      created_at: this.#at(),
    };
    const held: Held<Volume> = { value, pending: [] };
    this.#volumes.set(id, held);
    this.#later(held, this.options.volumeMs, (it) => Object.assign(it, { status: statusOf(it) }));
    if (instanceIds.length > 0) this.attach(id, instanceIds);
    return this.getVolume(id);
  }

  getVolume(id: string): Volume {
    const held = this.#find(this.#volumes, id);
    if (held === undefined) throw refused(404, 'not_found');
    return held.value;
  }

  /** It reads ERROR from now on, whatever becomes of its attachments. */
  breakVolume(id: string): void {
    this.getVolume(id).status = 'ERROR';
  }

  setVolume(id: string, fields: Partial<Volume>): void {
    Object.assign(this.getVolume(id), fields);
  }

  deleteVolume(id: string): boolean {
    const held = this.#find(this.#volumes, id);
    if (held === undefined) return false;
    this.#refuseOverlap(held);
    if ((held.value.attached_instance_ids ?? []).length > 0) throw refused(409, 'volume_attached');
    held.value.status = 'DELETING';
    this.#later(held, this.options.volumeMs, () => this.#volumes.delete(id));
    this.#find(this.#volumes, id);
    return true;
  }

  attach(id: string, instanceIds: readonly string[]): Volume {
    const volume = this.getVolume(id);
    this.#refuseOverlap(this.#volumes.get(id));
    if (volume.status === 'ERROR' || volume.status === 'DELETING') throw refused(409, 'invalid_state');
    for (const instance of instanceIds) this.#instance(instance);
    volume.attached_instance_ids = [...new Set([...(volume.attached_instance_ids ?? []), ...instanceIds])];
    volume.status = 'ATTACHING';
    const held = this.#volumes.get(id) as Held<Volume>;
    this.#later(held, this.options.volumeMs, (it) => Object.assign(it, { status: statusOf(it) }));
    return this.getVolume(id);
  }

  detach(id: string, instanceIds: readonly string[]): Volume {
    const volume = this.getVolume(id);
    this.#refuseOverlap(this.#volumes.get(id));
    if (volume.status !== 'ERROR' && volume.status !== 'DELETING') volume.status = 'DETACHING';
    const held = this.#volumes.get(id) as Held<Volume>;
    this.#later(held, this.options.volumeMs, (it) => this.#detach(it, instanceIds));
    return this.getVolume(id);
  }

  resize(id: string, sizeGb: number): Volume {
    const volume = this.getVolume(id);
    this.#refuseOverlap(this.#volumes.get(id));
    if (sizeGb < volume.size_gb) throw refused(400, 'invalid_request');
    volume.size_gb = sizeGb;
    return volume;
  }

  #detach(volume: Volume, instanceIds: readonly string[]): void {
    volume.attached_instance_ids = (volume.attached_instance_ids ?? []).filter(
      (id) => !instanceIds.includes(id),
    );
    volume.status = statusOf(volume);
  }

  #refuseOverlap(held: Held<Volume> | undefined): void {
    if (this.options.refusesOverlap && (held?.pending.length ?? 0) > 0)
      throw refused(409, 'operation_in_progress');
  }

  #freeName(name: string): string {
    const taken = new Set(this.instances.map((it) => it.name));
    if (!this.options.hasUniqueNames || !taken.has(name)) return name;
    let suffix = 2;
    while (taken.has(`${name}-${suffix}`)) suffix++;
    return `${name}-${suffix}`;
  }

  #instance(id: string): Held<Instance> {
    const held = this.#find(this.#instances, id);
    if (held === undefined) throw refused(404, 'not_found');
    return held;
  }

  #later<T>(held: Held<T>, afterMs: number, apply: (target: T) => void): void {
    held.pending.push({ at: this.#clock.now() + afterMs, apply });
  }

  /** Applies what is due at the time of a look-up, dated to when it was due. */
  #find<T extends object>(all: Map<string, Held<T>>, id: string): Held<T> | undefined {
    const held = all.get(id);
    while (held?.pending[0] !== undefined && held.pending[0].at <= this.#clock.now()) {
      const due = held.pending.shift() as Pending<T>;
      if ('updated_at' in held.value) held.value.updated_at = this.#at(due.at);
      due.apply(held.value);
    }
    return all.get(id);
  }

  #at(ms = this.#clock.now()): string {
    return new Date(ms).toISOString();
  }
}

function statusOf(volume: Volume): Volume['status'] {
  if (volume.status === 'ERROR' || volume.status === 'DELETING') return volume.status;
  return (volume.attached_instance_ids ?? []).length > 0 ? 'ATTACHED' : 'AVAILABLE';
}

function refused(status: 400 | 404 | 409, code: string): ProviderError {
  const problem = ({ 400: 'refused', 404: 'not_found', 409: 'conflict' } as const)[status];
  return new ProviderError(problem, `${status}: ${code}`, { status, code });
}

/** The provider as a client of the contract sees it: each call goes through `faults`, by default the provider's. */
export function plainProviderClient(
  provider: PlainProvider,
  faults: Pick<ProviderFaults, 'through'> = provider.faults,
): OrchestratorClient {
  const available = (region: string | undefined) =>
    provider.configurations.flatMap((it) => {
      const regions = it.regions.filter(
        (name) => (region === undefined || name === region) && provider.free(it.id, name) > 0,
      );
      return it.available && regions.length > 0 ? [{ ...it, regions }] : [];
    });
  return {
    listConfigurations: (options) =>
      faults.through('listConfigurations', { args: [], options }, () => provider.configurations),
    listAvailability: (region, options) =>
      faults.through('listAvailability', { args: [region], options }, () => available(region)),
    listInstances: (options) =>
      faults.through('listInstances', { args: [], options }, () => provider.instances),
    createInstance: (request, key, options) =>
      faults.through('createInstance', { args: [request, key], options }, () => provider.create(request)),
    getInstance: (id, region, options) =>
      faults.through('getInstance', { id, args: [region], options }, () => provider.get(id)),
    pollInstance: async (id, region, mark, options) => {
      const instance = await faults.through('getInstance', { id, args: [region], options }, () =>
        provider.get(id),
      );
      const newMark = JSON.stringify(instance);
      return newMark === mark ? 'unchanged' : { instance, mark: newMark };
    },
    deleteInstance: (id, region, options) =>
      faults.through('deleteInstance', { id, args: [region], options }, () => provider.delete(id)),
    startInstance: (id, region, options) =>
      faults.through('startInstance', { id, args: [region], options }, () => provider.start(id)),
    stopInstance: (id, region, options) =>
      faults.through('stopInstance', { id, args: [region], options }, () => provider.stop(id)),
    listVolumeLocations: (options) =>
      faults.through('listVolumeLocations', { args: [], options }, () => [
        ...provider.options.volumeLocations,
      ]),
    listVolumeUsage: (options) =>
      faults.through('listVolumeUsage', { args: [], options }, () => provider.volumeUsage),
    createVolume: (request, key, options) =>
      faults.through('createVolume', { args: [request, key], options }, () => provider.createVolume(request)),
    getVolume: (id, options) =>
      faults.through('getVolume', { id, args: [], options }, () => provider.getVolume(id)),
    deleteVolume: (id, options) =>
      faults.through('deleteVolume', { id, args: [], options }, () => provider.deleteVolume(id)),
    attachVolume: (id, ids, options) =>
      faults.through('attachVolume', { id, args: [ids], options }, () => provider.attach(id, ids)),
    detachVolume: (id, ids, options) =>
      faults.through('detachVolume', { id, args: [ids], options }, () => provider.detach(id, ids)),
    restartInstance: (id, region, options) =>
      faults.through('restartInstance', { id, args: [region], options }, () => provider.restart(id)),
    restartStatus: (id, region, options) =>
      faults.through('restartStatus', { id, args: [region], options }, () => provider.restartStatus(id)),
    resizeVolume: (id, size, options) =>
      faults.through('resizeVolume', { id, args: [size], options }, () => provider.resize(id, size)),
    close: async () => undefined,
  };
}
