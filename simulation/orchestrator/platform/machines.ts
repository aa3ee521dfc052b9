import type {
  MachineSpec,
  ObservedMachine,
  Presence,
  Step,
} from '../../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Scheduler } from '../../kernel/scheduler.ts';
import { unitsOf } from '../catalog.ts';
import { Addresses } from './addresses.ts';
import { type Machine, show } from './machine.ts';
import { done, failed, pending } from './steps.ts';
import type { Traits } from './traits.ts';

/** Why a machine is gone. */
export type Cause = 'destroyed' | 'lost' | 'reaped' | 'reclaimed';

/** Who is told of what happens to machines. */
export interface MachineObserver {
  /** Whether the call that reaches the platform now comes later than the manifest allows. */
  isLandingLate(): boolean;
  /** For how many milliseconds the manifest lets a new resource stay hidden, counted from when the call was sent. */
  promiseLeftMs(): number;
  made(machine: Machine): void;
  /** A call told the platform to remove it. */
  removalOrdered(machine: Machine): void;
  removed(machine: Machine, cause: Cause): void;
}

const POLL_MS = 2_500;

/** The true machines of the platform. Transitional states end by themselves as time passes. */
export class Machines {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #traits: Traits;
  readonly #observer: MachineObserver;
  readonly #addresses = new Addresses();
  readonly #machines = new Map<number, Machine>();
  readonly #causes = new Map<number, Cause>();
  #serial = 0;

  constructor(parts: { scheduler: Scheduler; chance: Chance; traits: Traits; observer: MachineObserver }) {
    this.#scheduler = parts.scheduler;
    this.#chance = parts.chance;
    this.#traits = parts.traits;
    this.#observer = parts.observer;
  }

  /** All that exist now, shown or not. */
  all(): Machine[] {
    const now = this.#scheduler.now;
    for (const machine of this.#machines.values())
      while (this.#machines.has(machine.serial) && machine.until <= now) this.#pass(machine);
    return [...this.#machines.values()];
  }

  of(ref: string): Machine[] {
    return this.all().filter(({ spec }) => spec.ref === ref);
  }

  get(ref: string): Presence<ObservedMachine> {
    const machine = this.#visible(ref);
    return machine === undefined ? { answer: 'gone' } : { answer: 'observed', value: this.show(machine) };
  }

  list(): ObservedMachine[] {
    return this.all()
      .filter(({ visibleAt }) => visibleAt <= this.#scheduler.now)
      .map((machine) => this.show(machine));
  }

  show(machine: Machine): ObservedMachine {
    return show(machine, this.#scheduler.now, this.#traits);
  }

  create(spec: MachineSpec, cookie: string | null): Step<ObservedMachine> {
    const known = cookie === null ? this.#namedSo(spec.ref) : this.#built(cookie);
    if (cookie !== null && known === undefined) return failed('gone', 'the platform has no such machine');
    if (known === undefined && !this.#hasFreeUnit(spec)) return failed('capacity', 'every unit is taken');
    return this.#answerCreate(known ?? this.#make(spec));
  }

  stop(ref: string): Step<ObservedMachine> {
    const machine = this.#visible(ref);
    if (machine === undefined) return failed('gone', 'the platform has no such machine');
    if (!this.#traits.manifest.stop) return failed('unsupported', 'machines cannot be stopped here');
    if (machine.power === 'running')
      this.#enter(machine, 'stopping', 'stopped', this.#chance.between(500, 8_000));
    return this.#reached(machine, 'stopped', 'stopping');
  }

  start(ref: string): Step<ObservedMachine> {
    const machine = this.#visible(ref);
    if (machine === undefined) return failed('gone', 'the platform has no such machine');
    if (!this.#traits.manifest.resume) return failed('unsupported', 'machines cannot be started again here');
    if (machine.power === 'stopped') {
      if (!machine.holdsUnit && !this.#hasFreeUnit(machine.spec))
        return failed('capacity', 'every unit is taken');
      machine.holdsUnit = true;
      this.#enter(machine, 'starting', 'running', this.#chance.between(1_000, 12_000));
    }
    return this.#reached(machine, 'running', 'starting');
  }

  restart(ref: string, id: string): Step<ObservedMachine> {
    const machine = this.#visible(ref);
    if (machine === undefined) return failed('gone', 'the platform has no such machine');
    if (!this.#traits.manifest.restart) return failed('unsupported', 'machines cannot be restarted here');
    if (machine.power === 'running' && machine.restartId !== id) {
      machine.restartId = id;
      machine.sshReadyAt = Number.POSITIVE_INFINITY;
      const shown = this.#chance.pick(['stopping', 'starting'] as const);
      this.#enter(machine, shown, 'running', this.#chance.between(1_000, 12_000));
    }
    const isOurs = machine.restartId === id && machine.becomes === 'running';
    return this.#reached(
      machine,
      'running',
      isOurs && machine.power === 'stopping' ? 'stopping' : 'starting',
    );
  }

  destroy(ref: string): Step<null> {
    const machines = this.of(ref).filter(({ visibleAt }) => visibleAt <= this.#scheduler.now);
    for (const machine of machines) {
      if (machine.power === 'destroying') continue;
      const reservedMs = machine.createdAt + this.#traits.leastReservationMs - this.#scheduler.now;
      if (reservedMs > 0)
        return failed('conflict', 'the reservation runs on', 'none', Math.min(reservedMs, 60_000));
      if (machine.power === 'building' && this.#traits.locksWhileBuilding)
        return failed('transient', 'the server is locked');
      this.#observer.removalOrdered(machine);
      this.#enter(machine, 'destroying', 'removed', this.#chance.between(500, 9_000));
      this.#causes.set(machine.serial, 'destroyed');
    }
    if (machines.length === 0)
      return this.#traits.refusesTheGone ? failed('gone', 'the platform has no such machine') : done(null);
    const last = Math.max(...machines.map(({ until }) => until));
    return pending('removing', Math.min(POLL_MS, last - this.#scheduler.now));
  }

  /** The machine is gone without an order of ours. */
  lose(machine: Machine, cause: Exclude<Cause, 'destroyed'>): void {
    this.#causes.set(machine.serial, cause);
    if (cause === 'reclaimed')
      this.#enter(machine, 'destroying', 'removed', this.#chance.between(2_000, 40_000));
    else this.#remove(machine);
  }

  /** The guest shuts down by itself. */
  powerOff(machine: Machine): void {
    if (machine.power === 'running') this.#enter(machine, 'stopping', 'stopped', 1_000);
  }

  breakDown(machine: Machine): void {
    this.#enter(machine, 'failed', 'failed', Number.POSITIVE_INFINITY);
  }

  /** Its address changes while it runs. */
  move(machine: Machine): void {
    const old = machine.ip;
    machine.ip = this.#addresses.take();
    if (old !== null) this.#addresses.free(old);
  }

  /**
   * The machine that a create of this ref finds. A create that comes in time overlooks a machine that is not shown yet,
   * and makes a second one; a create that comes late finds it.
   */
  #namedSo(ref: string): Machine | undefined {
    return this.#visible(ref) ?? (this.#observer.isLandingLate() ? this.of(ref)[0] : undefined);
  }

  #built(cookie: string): Machine | undefined {
    return this.all().find(({ serial }) => cookie === `build-${serial}`);
  }

  #visible(ref: string): Machine | undefined {
    return this.of(ref).find(({ visibleAt }) => visibleAt <= this.#scheduler.now);
  }

  #hasFreeUnit({ offerId, datacenter }: MachineSpec): boolean {
    const taken = this.all().filter(
      ({ spec, holdsUnit }) => holdsUnit && spec.offerId === offerId && spec.datacenter === datacenter,
    );
    return taken.length < unitsOf(offerId, datacenter);
  }

  #make(spec: MachineSpec): Machine {
    const now = this.#scheduler.now;
    const [least, most] = this.#traits.bootMs;
    const machine: Machine = {
      serial: ++this.#serial,
      spec,
      createdAt: now,
      power: 'building',
      visibleAt: now + this.#chance.between(0, this.#observer.promiseLeftMs()),
      until: now + this.#chance.between(least, most),
      becomes: this.#chance.happens(this.#traits.bootFailureRate) ? 'failed' : 'running',
      ip: null,
      staleIp: null,
      staleUntil: 0,
      sshReadyAt: Number.POSITIVE_INFINITY,
      hostKey: `SHA256:${this.#chance.bytes(32).toString('base64').replace(/=+$/, '')}`,
      restartId: null,
      diskId: this.#chance.bytes(8).toString('hex'),
      holdsUnit: true,
    };
    this.#machines.set(machine.serial, machine);
    this.#observer.made(machine);
    return machine;
  }

  #answerCreate(machine: Machine): Step<ObservedMachine> {
    const leftMs = machine.until - this.#scheduler.now;
    if (machine.power === 'building') return pending(`build-${machine.serial}`, Math.min(POLL_MS, leftMs));
    if (machine.power === 'failed') return failed('boot_failed', 'the board reports a fault', 'certain');
    if (machine.power === 'running') return done(this.show(machine));
    return failed('conflict', `the machine exists and is ${machine.power}`, 'certain');
  }

  #reached(
    machine: Machine,
    goal: 'running' | 'stopped',
    passing: 'starting' | 'stopping',
  ): Step<ObservedMachine> {
    if (machine.power === goal) return done(this.show(machine));
    const leftMs = machine.until - this.#scheduler.now;
    if (machine.power === passing) return pending(passing, Math.min(POLL_MS, leftMs));
    return failed(
      'conflict',
      `the machine is ${machine.power}`,
      'none',
      Number.isFinite(leftMs) ? leftMs : undefined,
    );
  }

  #enter(machine: Machine, power: Machine['power'], becomes: Machine['becomes'], forMs: number): void {
    machine.power = power;
    machine.becomes = becomes;
    machine.until = this.#scheduler.now + forMs;
    if (power === 'stopping' || power === 'failed') machine.sshReadyAt = Number.POSITIVE_INFINITY;
  }

  /** A transitional state is over. */
  #pass(machine: Machine): void {
    const at = machine.until;
    machine.until = Number.POSITIVE_INFINITY;
    if (machine.becomes === 'removed') {
      this.#remove(machine);
      return;
    }
    machine.power = machine.becomes;
    if (machine.power === 'stopped') this.#stopped(machine);
    if (machine.power !== 'running') return;
    if (machine.ip === null) {
      machine.ip = this.#addresses.take();
      machine.staleUntil = machine.staleIp === null ? 0 : at + this.#traits.staleAddressMs;
    }
    const isMute = this.#chance.happens(this.#traits.sshNeverRate);
    machine.sshReadyAt = isMute ? Number.POSITIVE_INFINITY : at + this.#chance.between(0, 6_000);
  }

  #stopped(machine: Machine): void {
    if (this.#traits.releasesUnits.has(machine.spec.offerId)) machine.holdsUnit = false;
    if (!this.#traits.addressesChange || machine.ip === null) return;
    this.#addresses.free(machine.ip);
    machine.staleIp = machine.ip;
    machine.ip = null;
  }

  #remove(machine: Machine): void {
    this.#machines.delete(machine.serial);
    if (machine.ip !== null) this.#addresses.free(machine.ip);
    this.#observer.removed(machine, this.#causes.get(machine.serial) ?? 'destroyed');
  }
}
