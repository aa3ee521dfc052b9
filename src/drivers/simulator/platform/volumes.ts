import type {
  Listing,
  ObservedVolume,
  OwnerRef,
  Presence,
  Step,
  VolumeDriver,
  VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../ports/clock.ts';
import { done, failed, pendingUntil } from '../../kit/steps.ts';
import type { Draws, SimulatorConfig } from '../options.ts';
import { volumeDisk } from './disk-files.ts';
import type { AttachmentRecord, MachineRecord, VolumeRecord } from './records.ts';
import type { SimulatorState } from './state.ts';

interface Parts {
  state: SimulatorState;
  clock: Clock;
  draws: Draws;
  config: SimulatorConfig;
  datacenters: ReadonlySet<string>;
  /** The machine as it is now; undefined: gone. */
  machine: (ref: OwnerRef) => MachineRecord | undefined;
}

/** The platform's block storage. */
export class SimulatedVolumes implements VolumeDriver {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedVolume>> {
    const record = this.#settle(ref);
    return record === undefined
      ? { answer: 'gone' }
      : { answer: 'observed', value: this.#observe(ref, record) };
  }

  async list(): Promise<Listing<ObservedVolume>> {
    const refs = this.#parts.state.volumes.all().map((record) => record.spec.ref);
    const items = refs.flatMap((ref) => {
      const record = this.#settle(ref);
      return record === undefined ? [] : [this.#observe(ref, record)];
    });
    return { answer: 'listed', items };
  }

  async create(spec: VolumeSpec, _cookie: string | null): Promise<Step<ObservedVolume>> {
    if (!this.#parts.datacenters.has(spec.datacenter))
      return failed('invalid', 'none', `no datacenter ${spec.datacenter}`);
    const { state, clock } = this.#parts;
    const existing = this.#settle(spec.ref);
    if (existing === undefined) {
      const until = clock.now() + this.#drawMs(`${spec.ref}/create`);
      state.volumes.put(spec.ref, { spec, createdAt: clock.now(), state: 'creating', until });
    }
    const record = this.#settle(spec.ref);
    if (record === undefined) return failed('gone', 'none', 'the volume is gone');
    if (record.state === 'destroying')
      return failed('conflict', 'none', 'the volume is being destroyed', 500);
    if (record.until !== null) return pendingUntil(record.until, clock);
    return done(this.#observe(spec.ref, record));
  }

  async attach(ref: OwnerRef, machineRef: OwnerRef, _cookie: string | null): Promise<Step<null>> {
    const { state, clock } = this.#parts;
    const volume = this.#settle(ref);
    const machine = this.#parts.machine(machineRef);
    const id = attachmentId(ref, machineRef);
    const existing = state.attachments.get(id);
    if (volume === undefined) return failed('gone', 'none', `no volume ${ref}`);
    if (machine === undefined) return failed('gone', 'none', `no machine ${machineRef}`);
    if (existing === undefined) {
      const refusal = this.#refusal(volume, machine, 'attach');
      if (refusal !== undefined) return refusal;
      const until = clock.now() + this.#drawMs(`${id}/attach`);
      state.attachments.put(id, { volume: ref, machine: machineRef, state: 'attaching', until });
    }
    this.#settle(ref);
    const record = state.attachments.get(id);
    if (record === undefined || record.state === 'detaching')
      return failed('conflict', 'none', 'the volume is being detached from the machine', 500);
    return record.until === null ? done(null) : pendingUntil(record.until, clock);
  }

  async detach(ref: OwnerRef, machineRef: OwnerRef, _cookie: string | null): Promise<Step<null>> {
    const { state, clock } = this.#parts;
    const volume = this.#settle(ref);
    const machine = this.#parts.machine(machineRef);
    const id = attachmentId(ref, machineRef);
    const existing = state.attachments.get(id);
    if (volume === undefined || machine === undefined || existing === undefined) return done(null);
    if (existing.state !== 'detaching') {
      const refusal = this.#refusal(volume, machine, 'detach');
      if (refusal !== undefined) return refusal;
      const until = clock.now() + this.#drawMs(`${id}/detach`);
      state.attachments.put(id, { ...existing, state: 'detaching', until });
    }
    this.#settle(ref);
    const record = state.attachments.get(id);
    return record?.until == null ? done(null) : pendingUntil(record.until, clock);
  }

  async resize(ref: OwnerRef, sizeGb: number, _cookie: string | null): Promise<Step<ObservedVolume>> {
    const { state, clock } = this.#parts;
    const existing = this.#settle(ref);
    if (existing === undefined) return failed('gone', 'none', `no volume ${ref}`);
    if (existing.spec.sizeGb > sizeGb)
      return failed('invalid', 'none', `the volume has ${existing.spec.sizeGb} GB and cannot shrink`);
    if (existing.state === 'available' && existing.spec.sizeGb < sizeGb) {
      const refusal = this.#resizeRefusal(ref);
      if (refusal !== undefined) return refusal;
      const until = clock.now() + this.#drawMs(`${ref}/${sizeGb}/resize`);
      state.volumes.put(ref, { ...existing, state: 'resizing', until, nextSizeGb: sizeGb });
    }
    const record = this.#settle(ref);
    if (record === undefined) return failed('gone', 'none', 'the volume is gone');
    if (record.state === 'resizing' && record.nextSizeGb === sizeGb)
      return pendingUntil(record.until ?? 0, clock);
    if (record.state !== 'available') return failed('conflict', 'none', `the volume is ${record.state}`, 500);
    return done(this.#observe(ref, record));
  }

  async destroy(ref: OwnerRef, _cookie: string | null): Promise<Step<null>> {
    const { state, clock } = this.#parts;
    const existing = this.#settle(ref);
    if (existing === undefined) return done(null);
    if (existing.state !== 'destroying') {
      const until = clock.now() + this.#drawMs(`${ref}/destroy`);
      state.volumes.put(ref, { ...existing, state: 'destroying', until });
    }
    const record = this.#settle(ref);
    return record?.until == null ? done(null) : pendingUntil(record.until, clock);
  }

  /** The volumes that the machine's guest sees now. */
  attachedTo(machine: OwnerRef): VolumeRecord[] {
    const attachments = this.#parts.state.attachments.all().filter((record) => record.machine === machine);
    return attachments.flatMap(({ volume }) => {
      const record = this.#settle(volume);
      return record !== undefined && this.#observe(volume, record).attachedTo.includes(machine)
        ? [record]
        : [];
    });
  }

  /** Drops the machine's attachment records; what is on the volumes stays. */
  release(machine: OwnerRef): void {
    for (const record of this.#parts.state.attachments.all()) {
      if (record.machine === machine)
        this.#parts.state.attachments.delete(attachmentId(record.volume, machine));
    }
  }

  #refusal(volume: VolumeRecord, machine: MachineRecord, verb: 'attach' | 'detach'): Step<never> | undefined {
    const { power, spec } = machine;
    if (volume.state !== 'available') return failed('conflict', 'none', `the volume is ${volume.state}`, 500);
    if (volume.spec.datacenter !== spec.datacenter)
      return failed(
        'invalid',
        'none',
        `the volume is in ${volume.spec.datacenter}, the machine in ${spec.datacenter}`,
      );
    if (power === 'destroying') return failed('conflict', 'none', 'the machine is being destroyed');
    if (this.#parts.config.attach_volume === 'cold' && power !== 'stopped')
      return failed(
        'conflict',
        'none',
        `this platform can ${verb} only while the machine is stopped, it is ${power}`,
      );
    if (power !== 'running' && power !== 'stopped')
      return failed('conflict', 'none', `the machine is ${power}`, 500);
    return undefined;
  }

  #resizeRefusal(ref: OwnerRef): Step<never> | undefined {
    const isDetached = this.#attachments(ref).length === 0;
    return this.#parts.config.attach_volume === 'hot' || isDetached
      ? undefined
      : failed('conflict', 'none', 'this platform can resize only what is attached to nothing');
  }

  #drawMs(name: string): number {
    return this.#parts.draws.durationMs(name, this.#parts.config.volume_ms);
  }

  /** Writes down what the time has done to the volume and its attachments; undefined: gone. */
  #settle(ref: OwnerRef): VolumeRecord | undefined {
    const { state, clock } = this.#parts;
    const record = state.volumes.get(ref);
    if (record === undefined) return undefined;
    const isOver = (until: number | null): boolean => until !== null && until <= clock.now();
    if (record.state === 'destroying' && isOver(record.until)) {
      state.transaction(() => {
        for (const attachment of this.#attachments(ref))
          state.attachments.delete(attachmentId(ref, attachment.machine));
        state.deleteDisk(volumeDisk(ref));
        state.volumes.delete(ref);
      });
      return undefined;
    }
    for (const attachment of this.#attachments(ref)) {
      const id = attachmentId(ref, attachment.machine);
      if (!isOver(attachment.until)) continue;
      if (attachment.state === 'detaching') state.attachments.delete(id);
      else state.attachments.put(id, { ...attachment, state: 'attached', until: null });
    }
    if (record.state === 'creating' && isOver(record.until))
      state.volumes.put(ref, { ...record, state: 'available', until: null });
    if (record.state === 'resizing' && isOver(record.until)) {
      const { nextSizeGb = record.spec.sizeGb, ...rest } = record;
      const spec = { ...record.spec, sizeGb: nextSizeGb };
      state.volumes.put(ref, { ...rest, spec, state: 'available', until: null });
    }
    return state.volumes.get(ref);
  }

  #attachments(volume: OwnerRef): AttachmentRecord[] {
    return this.#parts.state.attachments.all().filter((record) => record.volume === volume);
  }

  #observe(ref: OwnerRef, record: VolumeRecord): ObservedVolume {
    const held = this.#attachments(ref).filter((attachment) => attachment.state !== 'attaching');
    return {
      ref,
      attachedTo: held.map((attachment) => attachment.machine),
      createdAt: record.createdAt,
      sizeGb: record.spec.sizeGb,
      note: record.spec.note,
    };
  }
}

function attachmentId(volume: OwnerRef, machine: OwnerRef): string {
  return `${volume}/${machine}`;
}
