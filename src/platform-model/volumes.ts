import type {
  ObservedVolume,
  OwnerRef,
  Presence,
  Step,
  VolumeSpec,
  VolumeUse,
} from '../orchestrator/model/platform-driver.ts';
import type { Machines } from './machines.ts';
import { type AttachmentRecord, type MachineRecord, sizeGbOf, type VolumeRecord } from './records.ts';
import type { Ports, VolumePhase } from './rules.ts';
import { done, failed, pending } from './steps.ts';

/** Poll interval for a resource that is busy with another step. */
const BUSY_MS = 500;
const NO_VOLUME = failed('gone', 'the platform has no such volume');
/** The state of a volume, or of an attachment, in each phase. */
const stateOf = {
  create: 'creating',
  attach: 'attaching',
  detach: 'detaching',
  resize: 'resizing',
  destroy: 'destroying',
} as const satisfies Record<VolumePhase, string>;
const noAttachments: ReadonlyMap<OwnerRef, AttachmentRecord> = new Map();

/** The volumes of a platform and their attachment records. */
export class Volumes<M extends MachineRecord> {
  readonly #ports: Ports<M>;
  readonly #machines: Machines<M>;
  readonly #volumes = new Map<OwnerRef, VolumeRecord>();
  /** The attachments of each volume, by machine. */
  readonly #attachments = new Map<OwnerRef, Map<OwnerRef, AttachmentRecord>>();

  constructor(
    ports: Ports<M>,
    machines: Machines<M>,
    stored: { volumes?: Iterable<VolumeRecord>; attachments?: Iterable<AttachmentRecord> } = {},
  ) {
    this.#ports = ports;
    this.#machines = machines;
    for (const volume of stored.volumes ?? []) this.#volumes.set(volume.spec.ref, volume);
    for (const attachment of stored.attachments ?? []) this.#keep(attachment);
  }

  /** All existing volumes, visible or not. */
  all(): VolumeRecord[] {
    return [...this.#volumes.keys()].flatMap((ref) => this.#settle(ref) ?? []);
  }

  /** All attachment records. */
  attachments(): AttachmentRecord[] {
    return this.all().flatMap(({ spec }) => [...this.#of(spec.ref).values()]);
  }

  /** The existing machines that the volume is attached to. */
  holders(ref: OwnerRef): OwnerRef[] {
    const attached = [...this.#of(ref).values()].filter(
      (attachment) => this.#machineOf(attachment) !== undefined,
    );
    return attached.map(({ machine }) => machine);
  }

  /** The volumes that the machine's guest sees now. */
  attachedTo(machine: OwnerRef): VolumeRecord[] {
    return this.all().filter(({ spec }) => {
      const attachment = this.#of(spec.ref).get(machine);
      return attachment !== undefined && attachment.state !== 'attaching';
    });
  }

  /** The machines whose attachment is in this phase. For a phase of the volume itself: the ref of the volume. */
  underWay(ref: OwnerRef, phase: VolumePhase): OwnerRef[] {
    const state = stateOf[phase];
    const inState = [...this.#of(ref).values()].filter((attachment) => attachment.state === state);
    if (this.#settle(ref)?.state === state) return [ref];
    return inState.map(({ machine }) => machine);
  }

  /** Sets when the phase ends, for some of those that {@link underWay} returned. */
  endAt(ref: OwnerRef, of: readonly OwnerRef[], until: number): void {
    const volume = this.#volumes.get(ref);
    if (volume !== undefined && of.includes(ref)) this.#put({ ...volume, until });
    for (const attachment of this.#of(ref).values())
      if (of.includes(attachment.machine)) this.#attach({ ...attachment, until });
  }

  get(ref: OwnerRef): Presence<ObservedVolume> {
    const volume = this.#visible(ref);
    return volume === undefined ? { answer: 'gone' } : { answer: 'observed', value: this.#show(volume) };
  }

  list(): ObservedVolume[] {
    return this.all()
      .filter((volume) => this.#isVisible(volume))
      .map((volume) => this.#show(volume));
  }

  /** The bytes that are used of each visible volume, as {@link use} set it, or as its files take. */
  usage(): VolumeUse[] {
    return this.all()
      .filter((volume) => this.#isVisible(volume))
      .map(({ spec: { ref }, usedBytes }) => ({
        ref,
        usedBytes: usedBytes ?? this.#ports.storage?.usedBytesOfVolume?.(ref) ?? 0,
      }));
  }

  /** Sets how much of a volume is used. */
  use(ref: OwnerRef, usedBytes: number): void {
    const volume = this.#settle(ref);
    if (volume !== undefined) this.#put({ ...volume, usedBytes });
  }

  create(spec: VolumeSpec, cookie: string | null): Step<ObservedVolume> {
    const { rules, clock, volumeDraws, observer } = this.#ports;
    if (rules.hasVolumes?.(spec.datacenter) === false)
      return failed('invalid', `no datacenter ${spec.datacenter}`);
    const known = this.#settle(spec.ref);
    if (known === undefined && cookie !== null) return NO_VOLUME;
    if (known === undefined) {
      const now = clock.now();
      const hiddenUpToMs = rules.hiddenUpToMs?.();
      const volume: VolumeRecord = {
        spec,
        createdAt: now,
        ...(hiddenUpToMs !== undefined && {
          visibleAt: now + volumeDraws.durationMs(`${spec.ref}/hidden`, [0, hiddenUpToMs]),
        }),
        state: 'creating',
        until: this.#endOf('create', spec.ref),
      };
      this.#put(volume);
      observer?.volumeMade?.(volume);
    }
    const volume = this.#settle(spec.ref);
    if (volume === undefined) return NO_VOLUME;
    if (volume.state === 'destroying')
      return failed('conflict', 'the volume is being destroyed', 'none', BUSY_MS);
    return volume.state === 'creating' ? this.#pending('making', volume) : done(this.#show(volume));
  }

  attach(ref: OwnerRef, machineRef: OwnerRef): Step<null> {
    const { observer, rules } = this.#ports;
    const volume = this.#visible(ref);
    const machine = this.#machines.of(machineRef)[0];
    if (volume === undefined) return NO_VOLUME;
    if (machine === undefined) return failed('gone', `no machine ${machineRef}`);
    const existing = this.#of(ref).get(machineRef);
    if (existing === undefined || this.#machineOf(existing) === undefined) {
      const refusal = this.#refusal(volume, machine, 'attach');
      if (refusal !== undefined) return refusal;
      if (this.#of(ref).size > 0 && rules.isShareable?.(volume.spec.type) === false)
        return failed('conflict', 'the volume is attached to another machine');
      const until = this.#endOf('attach', `${ref}/${machineRef}`);
      this.#attach({ volume: ref, machine: machineRef, number: machine.number, state: 'attaching', until });
      observer?.attached?.(volume);
    }
    this.#settle(ref);
    const attachment = this.#of(ref).get(machineRef);
    if (attachment === undefined || attachment.state === 'detaching')
      return failed('conflict', 'the volume is being detached from the machine', 'none', BUSY_MS);
    return attachment.state === 'attached' ? done(null) : this.#pending('attaching', attachment);
  }

  detach(ref: OwnerRef, machineRef: OwnerRef): Step<null> {
    const volume = this.#visible(ref);
    const existing = this.#of(ref).get(machineRef);
    if (volume === undefined || existing === undefined) return done(null);
    if (existing.state !== 'detaching') {
      const machine = this.#machines.of(machineRef)[0];
      const refusal = machine && this.#refusal(volume, machine, 'detach');
      if (refusal !== undefined) return refusal;
      const until = this.#endOf('detach', `${ref}/${machineRef}`);
      this.#attach({ ...existing, state: 'detaching', until });
    }
    this.#settle(ref);
    const attachment = this.#of(ref).get(machineRef);
    return attachment === undefined ? done(null) : this.#pending('detaching', attachment);
  }

  resize(ref: OwnerRef, sizeGb: number): Step<ObservedVolume> {
    const { resizeVolume } = this.#ports.rules.manifest;
    const volume = this.#visible(ref);
    if (volume === undefined) return NO_VOLUME;
    if (resizeVolume === 'none') return failed('unsupported', 'this platform cannot resize volumes');
    const hasGb = sizeGbOf(volume);
    if (hasGb > sizeGb) return failed('invalid', `the volume has ${hasGb} GB and cannot shrink`);
    if (hasGb < sizeGb && volume.state === 'available') {
      if (resizeVolume === 'detached' && this.holders(ref).length > 0)
        return failed('conflict', 'this platform can resize only detached volumes');
      const until = this.#endOf('resize', `${ref}/${sizeGb}`);
      this.#put({ ...volume, state: 'resizing', until, nextSizeGb: sizeGb });
    }
    const resized = this.#settle(ref);
    if (resized === undefined) return NO_VOLUME;
    if (sizeGbOf(resized) === sizeGb) return done(this.#show(resized));
    if (resized.nextSizeGb === sizeGb) return this.#pending('growing', resized);
    return failed('conflict', `the volume is ${resized.state}`, 'none', BUSY_MS);
  }

  destroy(ref: OwnerRef): Step<null> {
    const volume = this.#visible(ref);
    if (volume !== undefined && volume.state !== 'destroying')
      this.#put({ ...volume, state: 'destroying', until: this.#endOf('destroy', ref) });
    const left = volume && this.#settle(ref);
    return left === undefined ? done(null) : this.#pending('removing', left);
  }

  /** Deletes the attachment records of a machine that is gone, unless `recordsLinger`. The volumes keep their data. */
  release({ spec, number }: MachineRecord): void {
    if (this.#ports.rules.recordsLinger) return;
    for (const attachments of this.#attachments.values()) {
      const attachment = attachments.get(spec.ref);
      if (attachment?.number === number) this.#detached(attachment);
    }
  }

  #refusal(volume: VolumeRecord, machine: M, verb: 'attach' | 'detach'): Step<never> | undefined {
    const { power, spec } = machine;
    if (volume.state !== 'available')
      return failed('conflict', `the volume is ${volume.state}`, 'none', BUSY_MS);
    const { datacenter } = volume.spec;
    if (datacenter !== spec.datacenter)
      return failed('invalid', `the volume is in ${datacenter}, the machine in ${spec.datacenter}`);
    if (power === 'stopped' || (power === 'failed' && verb === 'detach')) return undefined;
    if (this.#ports.rules.manifest.attachVolume === 'cold')
      return failed(
        'conflict',
        `this platform can ${verb} only while the machine is stopped, it is ${power}`,
      );
    return power === 'running' ? undefined : failed('conflict', `the machine is ${power}`, 'none', BUSY_MS);
  }

  /** Applies due changes to the volume and its attachments; undefined: the volume is gone. */
  #settle(ref: OwnerRef): VolumeRecord | undefined {
    const volume = this.#volumes.get(ref);
    if (volume === undefined) return undefined;
    const attachments = [...this.#of(ref).values()];
    // Removes the attachment records of machines that are gone by now.
    if (attachments.length > 0) this.#machines.advance();
    const isOver = volume.until !== null && volume.until <= this.#ports.clock.now();
    if (isOver && volume.state === 'destroying') return this.#remove(volume);
    for (const attachment of this.#of(ref).values()) {
      if (attachment.until === null || attachment.until > this.#ports.clock.now()) continue;
      if (attachment.state === 'detaching') this.#detached(attachment);
      else this.#attach({ ...attachment, state: 'attached', until: null });
    }
    if (isOver) {
      const { nextSizeGb, ...rest } = volume;
      const sizeGb = nextSizeGb ?? volume.sizeGb;
      this.#put({ ...rest, state: 'available', until: null, ...(sizeGb !== undefined && { sizeGb }) });
    }
    return this.#volumes.get(ref);
  }

  #remove(volume: VolumeRecord): undefined {
    const { ref } = volume.spec;
    for (const attachment of [...this.#of(ref).values()]) this.#detached(attachment);
    this.#ports.storage?.volume(volume, undefined);
    this.#volumes.delete(ref);
    this.#attachments.delete(ref);
    this.#ports.observer?.volumeRemoved?.(volume);
  }

  #isVisible({ visibleAt = 0 }: VolumeRecord): boolean {
    return visibleAt <= this.#ports.clock.now();
  }

  #visible(ref: OwnerRef): VolumeRecord | undefined {
    const volume = this.#settle(ref);
    return volume !== undefined && this.#isVisible(volume) ? volume : undefined;
  }

  #of(ref: OwnerRef): ReadonlyMap<OwnerRef, AttachmentRecord> {
    return this.#attachments.get(ref) ?? noAttachments;
  }

  /** The machine of the attachment; undefined: it is gone. */
  #machineOf({ machine, number }: AttachmentRecord): M | undefined {
    return this.#machines.of(machine).find((found) => number === undefined || found.number === number);
  }

  #endOf(phase: VolumePhase, what: string): number {
    const { clock, rules, volumeDraws } = this.#ports;
    const range = rules.durations.volume?.[phase];
    return clock.now() + (range === undefined ? 0 : volumeDraws.durationMs(`${what}/${phase}`, range));
  }

  #pending(phase: string, { until }: { until: number | null }): Step<never> {
    return pending(phase, (until ?? 0) - this.#ports.clock.now(), phase);
  }

  #show(volume: VolumeRecord): ObservedVolume {
    const { ref, note } = volume.spec;
    const held = [...this.#of(ref).values()].filter(({ state }) => state !== 'attaching');
    return {
      ref,
      attachedTo: held.map(({ machine }) => machine),
      createdAt: volume.createdAt,
      sizeGb: sizeGbOf(volume),
      ...(this.#ports.rules.manifest.keepsNotes && { note }),
    };
  }

  #put(volume: VolumeRecord): void {
    this.#ports.storage?.volume(this.#volumes.get(volume.spec.ref), volume);
    this.#volumes.set(volume.spec.ref, volume);
  }

  #attach(attachment: AttachmentRecord): void {
    this.#ports.storage?.attachment(this.#of(attachment.volume).get(attachment.machine), attachment);
    this.#keep(attachment);
  }

  #detached(attachment: AttachmentRecord): void {
    this.#ports.storage?.attachment(attachment, undefined);
    this.#attachments.get(attachment.volume)?.delete(attachment.machine);
  }

  #keep(attachment: AttachmentRecord): void {
    const attachments = this.#attachments.get(attachment.volume) ?? new Map<OwnerRef, AttachmentRecord>();
    this.#attachments.set(attachment.volume, attachments.set(attachment.machine, attachment));
  }
}
