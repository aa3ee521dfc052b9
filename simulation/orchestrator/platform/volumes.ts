import type {
  ObservedVolume,
  Presence,
  Step,
  VolumeSpec,
} from '../../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Scheduler } from '../../kernel/scheduler.ts';
import type { MachineObserver, Machines } from './machines.ts';
import { done, failed, pending } from './steps.ts';
import type { Traits } from './traits.ts';

/** The true state of a volume. */
export interface SimulatedVolume {
  spec: VolumeSpec;
  sizeGb: number;
  /** The resize that is under way. */
  growth: { toGb: number; readyAt: number } | undefined;
  createdAt: number;
  visibleAt: number;
  readyAt: number;
  /** The serial of the machine of each attachment record, by the machine's ref. */
  records: Map<string, number>;
}

/** Who is told of what happens to volumes. */
export interface VolumeObserver extends Pick<MachineObserver, 'promiseLeftMs'> {
  volumeMade(volume: SimulatedVolume): void;
  volumeRemoved(volume: SimulatedVolume): void;
  attached(volume: SimulatedVolume): void;
}

/** The true volumes of the platform, and its attachment records. */
export class Volumes {
  readonly #parts: {
    scheduler: Scheduler;
    chance: Chance;
    traits: Traits;
    machines: Machines;
    observer: VolumeObserver;
  };
  readonly #volumes = new Map<string, SimulatedVolume>();

  constructor(parts: {
    scheduler: Scheduler;
    chance: Chance;
    traits: Traits;
    machines: Machines;
    observer: VolumeObserver;
  }) {
    this.#parts = parts;
  }

  all(): SimulatedVolume[] {
    return [...this.#volumes.values()];
  }

  /** Its size now. */
  sizeGbOf(volume: SimulatedVolume): number {
    this.#grow(volume);
    return volume.sizeGb;
  }

  /** The live machines that a volume is attached to. */
  holders(volume: SimulatedVolume): string[] {
    return [...volume.records]
      .filter(([ref, serial]) => this.#parts.machines.of(ref).some((machine) => machine.serial === serial))
      .map(([ref]) => ref);
  }

  get(ref: string): Presence<ObservedVolume> {
    const volume = this.#visible(ref);
    return volume === undefined ? { answer: 'gone' } : { answer: 'observed', value: this.#show(volume) };
  }

  list(): ObservedVolume[] {
    return this.all()
      .filter(({ visibleAt }) => visibleAt <= this.#parts.scheduler.now)
      .map((volume) => this.#show(volume));
  }

  create(spec: VolumeSpec, cookie: string | null): Step<ObservedVolume> {
    const { scheduler, chance, observer } = this.#parts;
    const known = this.#volumes.get(spec.ref);
    if (known === undefined && cookie !== null) return failed('gone', 'the platform has no such volume');
    const volume = known ?? {
      spec,
      sizeGb: spec.sizeGb,
      growth: undefined,
      createdAt: scheduler.now,
      visibleAt: scheduler.now + chance.between(0, observer.promiseLeftMs()),
      readyAt: scheduler.now + chance.between(0, 6_000),
      records: new Map<string, number>(),
    };
    this.#volumes.set(spec.ref, volume);
    if (known === undefined) observer.volumeMade(volume);
    const leftMs = volume.readyAt - scheduler.now;
    return leftMs > 0 ? pending('making', leftMs) : done(this.#show(volume));
  }

  attach(ref: string, machineRef: string): Step<null> {
    const { machines, traits, observer } = this.#parts;
    const volume = this.#visible(ref);
    const machine = machines.of(machineRef)[0];
    if (volume === undefined) return failed('gone', 'the platform has no such volume');
    this.#forgetRecords(volume);
    if (machine === undefined) return failed('gone', 'the platform has no such machine');
    if (volume.records.get(machineRef) === machine.serial) return done(null);
    const fitting = traits.manifest.attachVolume === 'cold' ? ['stopped'] : ['running', 'stopped'];
    if (!fitting.includes(machine.power)) return failed('conflict', `the machine is ${machine.power}`);
    if (volume.spec.type === 'single' && volume.records.size > 0)
      return failed('conflict', 'the volume is attached to another machine');
    volume.records.set(machineRef, machine.serial);
    observer.attached(volume);
    return done(null);
  }

  detach(ref: string, machineRef: string): Step<null> {
    const { machines, traits } = this.#parts;
    const volume = this.#visible(ref);
    if (volume === undefined || !volume.records.has(machineRef)) return done(null);
    const isRunning = machines.of(machineRef).some(({ power }) => power === 'running');
    if (isRunning && traits.manifest.attachVolume === 'cold')
      return failed('conflict', 'the machine is running');
    volume.records.delete(machineRef);
    return done(null);
  }

  /** Takes a while; a second order of the same size goes on with the first. */
  resize(ref: string, sizeGb: number, cookie: string | null): Step<ObservedVolume> {
    const { scheduler, chance, traits } = this.#parts;
    const volume = this.#visible(ref);
    if (volume === undefined) return failed('gone', 'the platform has no such volume');
    this.#grow(volume);
    if (volume.sizeGb >= sizeGb) return done(this.#show(volume));
    if (traits.manifest.resizeVolume === 'detached' && this.holders(volume).length > 0)
      return failed('conflict', 'the volume is attached');
    if (volume.growth?.toGb !== sizeGb) {
      if (cookie !== null) return failed('gone', 'there is no such resize');
      volume.growth = { toGb: sizeGb, readyAt: scheduler.now + chance.between(0, 20_000) };
    }
    const leftMs = volume.growth.readyAt - scheduler.now;
    if (leftMs > 0) return pending('growing', leftMs);
    this.#grow(volume);
    return done(this.#show(volume));
  }

  #grow(volume: SimulatedVolume): void {
    const { growth } = volume;
    if (growth === undefined || growth.readyAt > this.#parts.scheduler.now) return;
    Object.assign(volume, { sizeGb: growth.toGb, growth: undefined });
  }

  destroy(ref: string): Step<null> {
    const volume = this.#visible(ref);
    if (volume === undefined) return done(null);
    this.#volumes.delete(ref);
    this.#parts.observer.volumeRemoved(volume);
    return done(null);
  }

  #visible(ref: string): SimulatedVolume | undefined {
    const volume = this.#volumes.get(ref);
    return volume !== undefined && volume.visibleAt <= this.#parts.scheduler.now ? volume : undefined;
  }

  #show(volume: SimulatedVolume): ObservedVolume {
    this.#forgetRecords(volume);
    this.#grow(volume);
    const { traits } = this.#parts;
    return {
      ref: volume.spec.ref,
      createdAt: volume.createdAt,
      attachedTo: [...volume.records.keys()],
      sizeGb: volume.sizeGb,
      ...(traits.keepsNotes && { note: volume.spec.note }),
    };
  }

  /** Drops the records of machines that are gone, where the platform does that. */
  #forgetRecords(volume: SimulatedVolume): void {
    const { traits, machines } = this.#parts;
    if (traits.recordsLinger) return;
    for (const [ref, serial] of volume.records)
      if (!machines.of(ref).some((machine) => machine.serial === serial)) volume.records.delete(ref);
  }
}
