import type {
  Endpoint,
  Listing,
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Presence,
  Step,
} from '../../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../ports/clock.ts';
import { done, failed, pendingUntil } from '../../kit/steps.ts';
import { GUEST_USER } from '../guest/guest.ts';
import type { Draws, SimulatedCapacity, SimulatorConfig } from '../options.ts';
import { generateHostKey } from './host-key.ts';
import { isGuestUp, privateIpOf } from './lifecycle.ts';
import type { MachineRecord } from './records.ts';
import type { Runtime } from './runtime.ts';
import type { SimulatorState } from './state.ts';

interface Parts {
  state: SimulatorState;
  clock: Clock;
  draws: Draws;
  config: SimulatorConfig;
  capacity: readonly SimulatedCapacity[];
  host: string;
  runtime: Runtime;
}

/** The platform's compute API: each call is one look or one order, and the runtime carries it out. */
export class SimulatedMachines {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async get(ref: OwnerRef): Promise<Presence<ObservedMachine>> {
    const record = await this.#parts.runtime.settle(ref);
    return record === undefined ? { answer: 'gone' } : { answer: 'observed', value: this.#observe(record) };
  }

  async list(): Promise<Listing<ObservedMachine>> {
    const refs = this.#parts.state.machines.all().map((record) => record.spec.ref);
    const records = await Promise.all(refs.map((ref) => this.#parts.runtime.settle(ref)));
    return {
      answer: 'listed',
      items: records.filter((record) => record !== undefined).map((record) => this.#observe(record)),
    };
  }

  async create(spec: MachineSpec): Promise<Step<ObservedMachine>> {
    const outcome = await this.#parts.runtime.order(spec.ref, (record) => {
      if (record === undefined) return this.#refusal(spec) ?? this.#build(spec);
      const isSame = record.spec.offerId === spec.offerId && record.spec.datacenter === spec.datacenter;
      return isSame
        ? undefined
        : failed('already_exists', 'none', 'the ref names a machine of another offer or datacenter');
    });
    return 'outcome' in outcome ? outcome : this.#created(outcome.settled);
  }

  async stop(ref: OwnerRef): Promise<Step<ObservedMachine>> {
    const outcome = await this.#parts.runtime.order(ref, (record) => {
      if (record?.power !== 'running') return undefined;
      return { ...record, power: 'stopping', until: this.#endOf(record, 'stop', this.#parts.config.stop_ms) };
    });
    return 'outcome' in outcome ? outcome : this.#reached('stopped', 'stopping', outcome.settled);
  }

  async start(ref: OwnerRef): Promise<Step<ObservedMachine>> {
    const outcome = await this.#parts.runtime.order(ref, (record) => {
      if (record?.power !== 'stopped') return undefined;
      if (!this.#hasFreeUnit(record.spec)) return this.#noCapacity(record.spec);
      const next: MachineRecord = { ...record, boots: record.boots + 1, power: 'starting', holdsUnit: true };
      const until = this.#endOf(next, 'start', this.#parts.config.start_ms);
      return { ...next, until, reclaimAt: this.#reclaimAt(next.spec, next.boots, until) };
    });
    return 'outcome' in outcome ? outcome : this.#reached('running', 'starting', outcome.settled);
  }

  async restart(ref: OwnerRef, id: string): Promise<Step<ObservedMachine>> {
    const { clock, config, runtime } = this.#parts;
    const outcome = await runtime.order(ref, (record) => {
      if (record?.power !== 'running' || record.restartId === id) return undefined;
      const next: MachineRecord = { ...record, boots: record.boots + 1, restartId: id };
      // However short, there is a moment in which nothing answers: it is another boot.
      const upAt = Math.max(clock.now() + 1, this.#endOf(next, 'restart', config.restart_ms));
      return { ...next, bootedAt: upAt };
    });
    return 'outcome' in outcome ? outcome : this.#reached('running', 'restarting', outcome.settled);
  }

  async destroy(ref: OwnerRef): Promise<Step<null>> {
    const outcome = await this.#parts.runtime.order(ref, (record) => {
      if (record === undefined || record.power === 'destroying') return undefined;
      return {
        ...record,
        power: 'destroying',
        until: this.#endOf(record, 'destroy', this.#parts.config.destroy_ms),
      };
    });
    if ('outcome' in outcome) return outcome;
    const until = outcome.settled?.until;
    return until == null ? done(null) : pendingUntil(until, this.#parts.clock);
  }

  #refusal(spec: MachineSpec): Step<never> | undefined {
    if (!/^[a-z0-9-]{1,63}$/.test(spec.ref))
      return failed('invalid', 'none', 'a ref is 1 to 63 characters of [a-z0-9-]');
    const isKnown = this.#parts.capacity.some(
      (entry) => entry.offerId === spec.offerId && entry.datacenter === spec.datacenter,
    );
    if (!isKnown) return failed('invalid', 'none', `no offer ${spec.offerId} in ${spec.datacenter}`);
    return this.#hasFreeUnit(spec) ? undefined : this.#noCapacity(spec);
  }

  #build(spec: MachineSpec): MachineRecord {
    const { clock, config, draws, state } = this.#parts;
    const now = clock.now();
    const until = now + draws.durationMs(`${spec.ref}/1/boot`, config.boot_ms);
    return {
      spec,
      number: Math.max(0, ...state.machines.all().map((record) => record.number)) + 1,
      createdAt: now,
      power: 'building',
      until,
      bootFails: draws.happens(`${spec.ref}/boot-fails`, config.boot_failure_rate),
      sshListens: !draws.happens(`${spec.ref}/ssh-never-up`, config.ssh_never_up_rate),
      holdsUnit: true,
      bootedAt: null,
      boots: 1,
      reclaimAt: this.#reclaimAt(spec, 1, until),
      sshPort: null,
      sshHostKey: generateHostKey(),
      cloudInitUntil: null,
      runcmdDone: 0,
    };
  }

  #hasFreeUnit({ offerId, datacenter }: MachineSpec): boolean {
    const matches = (other: { offerId: string; datacenter: string }): boolean =>
      other.offerId === offerId && other.datacenter === datacenter;
    const units = this.#parts.capacity.filter(matches).reduce((sum, entry) => sum + entry.units, 0);
    const { clock, runtime, state } = this.#parts;
    const current = state.machines.all().map((record) => runtime.current(record, clock.now()));
    return current.filter((record) => record?.holdsUnit === true && matches(record.spec)).length < units;
  }

  #noCapacity(spec: MachineSpec): Step<never> {
    const { offerId, datacenter } = spec;
    this.#parts.state.units.add('refused', spec, this.#parts.clock.now());
    return failed('capacity', 'none', `no unit of ${offerId} is free in ${datacenter}`);
  }

  #reclaimAt({ ref, offerId, datacenter }: MachineSpec, boots: number, upAt: number): number | null {
    const { capacity, config, draws } = this.#parts;
    const isSpot = capacity.some(
      (entry) => entry.offerId === offerId && entry.datacenter === datacenter && entry.spot,
    );
    if (!isSpot || config.reclaim_spot_after_s === undefined) return null;
    const [min, max] = config.reclaim_spot_after_s;
    return upAt + draws.durationMs(`${ref}/${boots}/reclaim`, [min * 1000, max * 1000]);
  }

  /** When something that begins now ends. */
  #endOf(record: MachineRecord, name: string, rangeMs: [number, number]): number {
    const { clock, draws } = this.#parts;
    return clock.now() + draws.durationMs(`${record.spec.ref}/${record.boots}/${name}`, rangeMs);
  }

  #created(record: MachineRecord | undefined): Step<ObservedMachine> {
    if (record?.power === 'failed') return failed('boot_failed', 'certain', bootFailure);
    if (record?.power === 'building') return pendingUntil(record.until ?? 0, this.#parts.clock);
    if (record?.power === 'running' || record?.power === 'starting')
      return this.#reached('running', 'starting', record);
    // The ref names a machine that is there, but has left its boot behind.
    return failed('conflict', 'certain', `the machine exists and is ${record?.power ?? 'gone'}`);
  }

  /** The outcome of an order that brings a machine to `goal` by way of `passing`. */
  #reached(
    goal: 'running' | 'stopped',
    passing: 'starting' | 'stopping' | 'restarting',
    record: MachineRecord | undefined,
  ): Step<ObservedMachine> {
    const { clock } = this.#parts;
    if (record === undefined) return failed('gone', 'none', 'the platform has no such machine');
    if (record.power === 'running' && goal === 'running' && !isGuestUp(record, clock.now()))
      return pendingUntil(record.bootedAt ?? clock.now(), clock);
    if (record.power === goal) return done(this.#observe(record));
    if (record.power === passing && record.until !== null) return pendingUntil(record.until, clock);
    const retryAfterMs = record.until === null ? undefined : Math.max(1, record.until - clock.now());
    return failed('conflict', 'none', `the machine is ${record.power}`, retryAfterMs);
  }

  #observe(record: MachineRecord): ObservedMachine {
    const { spec, power, createdAt } = record;
    const endpoint = this.#endpoint(record);
    return {
      ref: spec.ref,
      power,
      createdAt,
      ...(endpoint !== undefined && { endpoint }),
      ...(power === 'failed' && { detail: bootFailure }),
      note: spec.note,
    };
  }

  #endpoint(record: MachineRecord): Endpoint | undefined {
    const { sshPort, sshHostKey } = record;
    if (sshPort === null) return undefined;
    return {
      publicIp: this.#parts.host,
      privateIp: privateIpOf(record),
      sshPort,
      sshUsername: GUEST_USER,
      portForwards: [{ internal_port: 22, external_port: sshPort }],
      hostKeyFingerprint: sshHostKey.fingerprint,
    };
  }
}

const bootFailure = 'the boot failed: a GPU fell off the bus (Xid 79)';
