import type { CreateInstanceRequest, Instance } from '../../../src/contract/instance.ts';
import type { CreateVolumeRequest, Volume } from '../../../src/contract/volume.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { PlainProvider, type PlainProviderOptions } from './plain-provider.ts';

export type DeedKind =
  | 'create'
  | 'delete'
  | 'start'
  | 'stop'
  | 'restart'
  | 'create volume'
  | 'delete volume'
  | 'attach'
  | 'detach'
  | 'resize';

/** Something that a provider carried out because it was asked to. Times are milliseconds since the epoch. */
export interface Deed {
  kind: DeedKind;
  at: number;
  /** When it shows. */
  doneAt: number;
  /** Of the instance, or of the volume. */
  id: string;
  /** Of a create: the name that was asked for. */
  name?: string;
  /** Of an attach and a detach. */
  instanceId?: string;
  sizeGb?: number;
}

export interface ProviderTruth {
  deeds: readonly Deed[];
  instances: readonly Instance[];
  volumes: readonly Volume[];
  /** The names of instances whose create came again with the same key. */
  repeatedCreates: readonly string[];
}

/** A {@link PlainProvider} that knows idempotency keys and writes down what it carried out; what changes nothing is no deed. */
export class JournaledProvider {
  readonly provider: PlainProvider;
  readonly #deeds: Deed[] = [];
  readonly #repeatedCreates: string[] = [];
  readonly #made = new Map<string, string>();
  readonly #startedUntil = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock, options: PlainProviderOptions) {
    this.#clock = clock;
    this.provider = new PlainProvider(clock, options);
  }

  truth(): ProviderTruth {
    const { instances, volumes } = this.provider;
    return { deeds: this.#deeds, instances, volumes, repeatedCreates: this.#repeatedCreates };
  }

  create(request: CreateInstanceRequest, key: string | undefined): Instance {
    const known = this.#known(key);
    if (known !== undefined) {
      this.#repeatedCreates.push(request.name ?? '');
      return this.provider.get(known);
    }
    const { id } = this.provider.create(request);
    this.#remember(key, id);
    this.#did('create', id, this.provider.options.bootMs, { name: request.name ?? '' });
    return this.provider.get(id);
  }

  delete(id: string): Instance {
    const { status } = this.provider.get(id);
    const left = this.provider.delete(id) as Instance;
    if (status !== 'DESTROYING') this.#did('delete', id, this.provider.options.deleteMs);
    return left;
  }

  stop(id: string): Instance {
    this.provider.stop(id);
    this.#did('stop', id, this.provider.options.stopMs);
    return this.provider.get(id);
  }

  start(id: string): Instance {
    this.provider.start(id);
    const { startMs } = this.provider.options;
    const now = this.#clock.now();
    if (now >= (this.#startedUntil.get(id) ?? now)) {
      this.#startedUntil.set(id, now + startMs);
      this.#did('start', id, startMs);
    }
    return this.provider.get(id);
  }

  restart(id: string): Instance {
    const instance = this.provider.restart(id);
    this.#did('restart', id, this.provider.options.restartMs);
    return instance;
  }

  createVolume(request: CreateVolumeRequest, key: string | undefined): Volume {
    const known = this.#known(key);
    if (known !== undefined) return this.provider.getVolume(known);
    const { id } = this.provider.createVolume(request);
    this.#remember(key, id);
    const { name, size_gb: sizeGb } = request;
    this.#did('create volume', id, this.provider.options.volumeMs, { name, sizeGb });
    return this.provider.getVolume(id);
  }

  deleteVolume(id: string): void {
    const { status } = this.provider.getVolume(id);
    this.provider.deleteVolume(id);
    if (status !== 'DELETING') this.#did('delete volume', id, this.provider.options.volumeMs);
  }

  attach(id: string, instanceIds: readonly string[]): Volume {
    const before = this.#attachedTo(id);
    this.provider.attach(id, instanceIds);
    for (const instanceId of instanceIds)
      if (!before.includes(instanceId))
        this.#did('attach', id, this.provider.options.volumeMs, { instanceId });
    return this.provider.getVolume(id);
  }

  detach(id: string, instanceIds: readonly string[] | undefined): Volume {
    const before = this.#attachedTo(id);
    const wanted = before.filter((instanceId) => (instanceIds ?? before).includes(instanceId));
    if (wanted.length > 0) this.provider.detach(id, wanted);
    for (const instanceId of wanted) this.#did('detach', id, this.provider.options.volumeMs, { instanceId });
    return this.provider.getVolume(id);
  }

  resize(id: string, sizeGb: number): Volume {
    const before = this.provider.getVolume(id).size_gb;
    const volume = this.provider.resize(id, sizeGb);
    if (sizeGb !== before) this.#did('resize', id, 0, { sizeGb });
    return volume;
  }

  #attachedTo(id: string): readonly string[] {
    return this.provider.getVolume(id).attached_instance_ids ?? [];
  }

  #known(key: string | undefined): string | undefined {
    return key === undefined ? undefined : this.#made.get(key);
  }

  #remember(key: string | undefined, id: string): void {
    if (key !== undefined) this.#made.set(key, id);
  }

  #did(kind: DeedKind, id: string, tookMs: number, more: Partial<Deed> = {}): void {
    const at = this.#clock.now();
    this.#deeds.push({ kind, at, doneAt: at + tookMs, id, ...more });
  }
}
