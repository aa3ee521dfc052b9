import type { Inventory } from '../orchestrator/model/inventory.ts';
import type {
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Presence,
  Step,
} from '../orchestrator/model/platform-driver.ts';
import { DueQueue } from '../work/due-queue.ts';
import { MachineIndex } from './machine-index.ts';
import { type Cause, isGuestUp, type MachineRecord } from './records.ts';
import type { HostRules, Phase, Ports, Slot } from './rules.ts';
import { done, failed, pending } from './steps.ts';

type Wanted = Parameters<HostRules<MachineRecord>['freeSlots']>[0];

const BOOT_FAILURE = 'the boot failed: a GPU fell off the bus (Xid 79)';
const PAUSED = 'its disk has no space left';
const NO_MACHINE = failed('gone', 'the platform has no such machine');

/** The machines of a platform. Transitions that are due are applied at the next access, dated with their due time. */
export class Machines<M extends MachineRecord> {
  readonly #ports: Ports<M>;
  /** Releases the resources of a machine that is removed. */
  readonly #release: (machine: M) => void;
  readonly #index = new MachineIndex<M>();
  /** The numbers of the machines with a timed transition. */
  readonly #due = new DueQueue<number>();
  #last = 0;

  constructor(ports: Ports<M>, release: (machine: M) => void, stored: Iterable<M> = []) {
    this.#ports = ports;
    this.#release = release;
    for (const machine of stored) {
      this.#last = Math.max(this.#last, machine.number);
      if (machine.isDisowned !== true) this.#keep(undefined, machine);
    }
  }

  /** All existing machines, visible or not. */
  all(): M[] {
    this.advance();
    return this.#index.all();
  }

  /** The machines with this ref, visible or not, oldest first. */
  of(ref: OwnerRef): M[] {
    this.advance();
    return this.#index.of(ref);
  }

  get(ref: OwnerRef): Presence<ObservedMachine> {
    const machine = this.shown(ref)[0];
    return machine === undefined ? { answer: 'gone' } : { answer: 'observed', value: this.show(machine) };
  }

  list(): ObservedMachine[] {
    return this.allShown().map((machine) => this.show(machine));
  }

  /** The machines that get and list show. */
  allShown(): M[] {
    return this.all().filter((machine) => this.#isVisible(machine));
  }

  /** {@link allShown} for one ref. */
  shown(ref: OwnerRef): M[] {
    return this.of(ref).filter((machine) => this.#isVisible(machine));
  }

  get hasCounts(): boolean {
    return this.#ports.rules.places !== undefined;
  }

  /** Free units, and the machines that occupy units; undefined: this platform does not count. */
  inventory(avoidHosts: readonly string[] = []): Inventory | undefined {
    const { places, namesCounted = true, hosts } = this.#ports.rules;
    if (places === undefined) return undefined;
    const machines = this.all();
    const counted = machines.filter(({ holdsUnit }) => holdsUnit);
    const free = places.map((place) => ({
      ...place,
      units: Math.max(0, this.#freeUnits({ ...place, avoidHosts })),
    }));
    return {
      answer: 'counted',
      free,
      ...hosts?.report(free, machines, avoidHosts),
      ...(namesCounted && { counted: counted.map(({ spec }) => spec.ref) }),
    };
  }

  show(machine: M): ObservedMachine {
    const { rules } = this.#ports;
    const { spec, power, createdAt, host } = machine;
    const endpoint = rules.endpoint(machine);
    return {
      ref: spec.ref,
      power,
      createdAt,
      endpoint,
      host,
      ...(power === 'failed' && { detail: BOOT_FAILURE }),
      ...(power === 'paused' && { detail: PAUSED }),
      ...(rules.manifest.keepsNotes && { note: spec.note }),
    };
  }

  /** A cookie identifies the machine that an earlier call began. */
  create(spec: MachineSpec, cookie: string | null): Step<ObservedMachine> {
    const known = this.#begun(spec, cookie);
    if (known === undefined && cookie !== null) return NO_MACHINE;
    if (known === undefined) return this.#refusal(spec) ?? this.#created(this.#make(spec));
    const { offerId, datacenter } = known.spec;
    if (offerId !== spec.offerId || datacenter !== spec.datacenter)
      return failed('already_exists', 'the ref names a machine of another offer or datacenter');
    return this.#makePart(known) ?? this.#created(known);
  }

  stop(ref: OwnerRef): Step<ObservedMachine> {
    return this.#order(ref, 'stop', (machine) => {
      if (machine.power === 'running' || machine.power === 'paused') this.#enter(machine, 'stopping', 'stop');
      return this.#reached(machine, 'stopped', 'stopping');
    });
  }

  start(ref: OwnerRef): Step<ObservedMachine> {
    return this.#order(ref, 'resume', (machine) => {
      if (machine.power === 'paused') this.#put({ ...machine, power: 'running' });
      if (machine.power === 'stopped') {
        const wanted = { ...machine.spec, only: machine.host, avoidHosts: [] };
        if (!machine.holdsUnit && !this.#hasFreeUnit(wanted)) return this.#noCapacity(machine.spec);
        const slot = machine.holdsUnit ? undefined : this.#slotFor(wanted);
        const next = { ...machine, boots: machine.boots + 1, holdsUnit: true, ...slot };
        const until = this.#endOf(next, 'start');
        this.#put({ ...next, power: 'starting', until, reclaimAt: this.#reclaimAt(next, until) });
      }
      return this.#reached(machine, 'running', 'starting');
    });
  }

  restart(ref: OwnerRef, id: string): Step<ObservedMachine> {
    return this.#order(ref, 'restart', (machine) => {
      if (machine.power === 'running' && machine.restartId !== id) {
        const next = { ...machine, boots: machine.boots + 1, restartId: id };
        const power = this.#ports.rules.restartPower?.();
        const until = this.#endOf(next, 'restart');
        this.#put(
          power === undefined ? { ...next, bootedAt: until } : { ...next, power, until, isRestarting: true },
        );
      }
      const { isRestarting, restartId, power } = this.#index.get(machine.number) ?? machine;
      return this.#reached(machine, 'running', isRestarting && restartId === id ? power : 'running');
    });
  }

  destroy(ref: OwnerRef): Step<null> {
    const { rules, observer, clock } = this.#ports;
    const machines = this.shown(ref);
    for (const machine of machines) {
      if (machine.power === 'destroying') continue;
      const refusal = rules.refuseRemoval?.(machine);
      if (refusal !== undefined) return refusal;
      observer?.removalOrdered?.(machine);
      this.#enter({ ...machine, cause: 'destroyed' }, 'destroying', 'destroy');
    }
    if (machines.length === 0 && rules.refusesTheGone) return NO_MACHINE;
    const last = Math.max(0, ...this.shown(ref).map(({ until }) => until ?? 0));
    return last === 0 ? done(null) : this.#pending('removing', last - clock.now());
  }

  /** Removes Berth's mark: the machine is no longer listed, and its unit and volumes are free. */
  disown(ref: OwnerRef): Step<null> {
    const machines = this.shown(ref);
    const other = machines.find(({ power }) => power !== 'stopped');
    if (other !== undefined) return failed('conflict', `the machine is ${other.power}: stop it first`);
    for (const machine of machines) {
      this.#release(machine);
      const disowned = { ...machine, isDisowned: true, holdsUnit: false, until: null, reclaimAt: null };
      this.#ports.storage?.machine(machine, disowned);
      this.#keep(machine, undefined);
      this.#ports.rules.gone?.(machine);
    }
    return done(null);
  }

  /** Changes a machine outside of a driver call. */
  change(machine: M, change: Partial<M>): void {
    const current = this.#index.get(machine.number);
    if (current !== undefined) this.#put({ ...current, ...change });
  }

  /** Removes the machine at once. */
  remove(machine: M, cause: Cause): void {
    this.#release(machine);
    this.#ports.storage?.machine(machine, undefined);
    this.#keep(machine, undefined);
    this.#ports.rules.gone?.(machine);
    this.#ports.observer?.removed?.(machine, cause);
  }

  /** Earliest time of a possible transition; undefined: none is scheduled. */
  nextDueAt(): number | undefined {
    this.advance();
    return this.#due.nextAt();
  }

  /** Applies all due transitions, in the order of the machines' numbers. */
  advance(): void {
    const now = this.#ports.clock.now();
    const numbers: number[] = [];
    for (let next = this.#due.takeUntil(now); next !== undefined; next = this.#due.takeUntil(now))
      numbers.push(next.item);
    try {
      for (const number of numbers.sort((a, b) => a - b)) this.#pass(number, now);
    } catch (error) {
      for (const number of numbers) this.#await(this.#index.get(number));
      throw error;
    }
  }

  #pass(number: number, now: number): void {
    for (;;) {
      const machine = this.#index.get(number);
      if (machine === undefined || machine.until === null || machine.until > now) return;
      const next = this.#next(machine, machine.until);
      if (next === undefined) this.remove(machine, machine.cause ?? causeOf(machine));
      else this.#put(next);
    }
  }

  /** The machine after the transition due at `at`; undefined: it is gone. */
  #next(machine: M, at: number): M | undefined {
    const { rules } = this.#ports;
    const { power, bootFails, isRestarting, reclaimAt, reclaimTakesMs, holdsUnit, spec } = machine;
    if (power === 'building' && bootFails) return { ...machine, power: 'failed', until: null };
    if (power === 'building' || power === 'starting' || isRestarting) {
      const up: M = { ...machine, power: 'running', until: reclaimAt, bootedAt: at, isRestarting: false };
      return { ...up, ...rules.up?.(up, at) };
    }
    if (power === 'running' && reclaimTakesMs !== undefined)
      return { ...machine, power: 'destroying', cause: 'reclaimed', until: at + reclaimTakesMs };
    if (power !== 'stopping') return undefined;
    const until = rules.reapStoppedAfterMs === undefined ? null : at + rules.reapStoppedAfterMs;
    const isHeld = holdsUnit && rules.holdsUnitStopped?.(spec) === true;
    return { ...machine, power: 'stopped', until, holdsUnit: isHeld, ...rules.down?.(machine) };
  }

  #isVisible({ visibleAt = 0 }: M): boolean {
    return visibleAt <= this.#ports.clock.now();
  }

  /** The machine that an earlier create began. A hidden one may be missed, and then a second machine is made. */
  #begun({ ref }: MachineSpec, cookie: string | null): M | undefined {
    const begun = this.of(ref).find(({ number }) => cookie === `build-${number}`);
    const found = begun ?? this.shown(ref)[0];
    return found ?? (this.#ports.rules.findsHidden?.() ? this.of(ref)[0] : undefined);
  }

  #refusal(spec: MachineSpec): Step<never> | undefined {
    const { ref, offerId, datacenter } = spec;
    if (!/^[a-z0-9-]{1,63}$/.test(ref)) return failed('invalid', 'a ref is 1 to 63 characters of [a-z0-9-]');
    if (this.#ports.rules.units(offerId, datacenter) === undefined)
      return failed('invalid', `no offer ${offerId} in ${datacenter}`);
    return this.#hasFreeUnit(spec) ? undefined : this.#noCapacity(spec);
  }

  #hasFreeUnit(spec: Wanted): boolean {
    return this.#freeUnits(spec) > 0;
  }

  /** Negative if the offer's units were reduced below the number of its machines. */
  #freeUnits(wanted: Wanted): number {
    const { units, hosts } = this.#ports.rules;
    const free = (units(wanted.offerId, wanted.datacenter) ?? 0) - this.#index.occupiedUnits(wanted);
    return Math.min(free, hosts?.freeSlots(wanted, this.#index.all()).length ?? free);
  }

  #slotFor(wanted: Wanted): Slot | undefined {
    return this.#ports.rules.hosts?.freeSlots(wanted, this.#index.all())[0];
  }

  #noCapacity(spec: MachineSpec): Step<never> {
    return failed('capacity', `no unit of ${spec.offerId} is free in ${spec.datacenter}`);
  }

  #make(spec: MachineSpec): M {
    const { rules, clock, machineDraws, observer } = this.#ports;
    const now = clock.now();
    const hiddenUpToMs = rules.hiddenUpToMs?.();
    const callsLeft = (rules.createCalls?.(spec) ?? 1) - 1;
    const begun: MachineRecord = {
      spec,
      number: this.#last + 1,
      createdAt: now,
      ...(hiddenUpToMs !== undefined && {
        visibleAt: now + machineDraws.durationMs(`${spec.ref}/hidden`, [0, hiddenUpToMs]),
      }),
      power: 'building',
      until: callsLeft > 0 ? null : now + machineDraws.durationMs(`${spec.ref}/1/boot`, rules.durations.boot),
      ...(callsLeft > 0 && { callsLeft }),
      bootFails: machineDraws.happens(`${spec.ref}/boot-fails`, rules.bootFailureRate ?? 0),
      holdsUnit: true,
      bootedAt: null,
      boots: 1,
      reclaimAt: null,
    };
    const reclaimAt = begun.until === null ? null : this.#reclaimAt(begun, begun.until);
    // `rules.make` returns the fields that only this platform's machines have.
    const machine = { ...begun, reclaimAt, ...this.#slotFor(spec), ...rules.make(spec) } as M;
    this.#put(machine);
    this.#last = machine.number;
    observer?.made?.(machine);
    return machine;
  }

  /** Makes the next part of a machine that takes several calls; undefined: the part is made, or none is left. */
  #makePart(machine: M): Step<never> | undefined {
    const { callsLeft = 0, power } = machine;
    if (power !== 'building' || callsLeft === 0) return undefined;
    const refusal = this.#ports.rules.refusePart?.(machine);
    if (refusal !== undefined) return refusal;
    const until = callsLeft === 1 ? this.#endOf(machine, 'boot') : null;
    const reclaimAt = until === null ? null : this.#reclaimAt(machine, until);
    this.#put({ ...machine, callsLeft: callsLeft - 1, until, reclaimAt });
    return undefined;
  }

  #reclaimAt({ spec, boots }: MachineRecord, upAt: number): number | null {
    const range = this.#ports.rules.reclaimAfterMs?.(spec);
    return range === undefined
      ? null
      : upAt + this.#ports.machineDraws.durationMs(`${spec.ref}/${boots}/reclaim`, range);
  }

  /** End time of a phase that begins now. */
  #endOf({ spec, boots }: MachineRecord, phase: Phase): number {
    const { clock, rules, machineDraws } = this.#ports;
    return clock.now() + machineDraws.durationMs(`${spec.ref}/${boots}/${phase}`, rules.durations[phase]);
  }

  #enter(machine: M, power: 'stopping' | 'destroying', name: 'stop' | 'destroy'): void {
    this.#put({ ...machine, power, until: this.#endOf(machine, name), isRestarting: false });
  }

  #order(
    ref: OwnerRef,
    ability: 'stop' | 'resume' | 'restart',
    carryOut: (machine: M) => Step<ObservedMachine>,
  ): Step<ObservedMachine> {
    if (!this.#ports.rules.manifest[ability])
      return failed('unsupported', `this platform does not ${ability}`);
    const machine = this.shown(ref)[0];
    return machine === undefined ? NO_MACHINE : carryOut(machine);
  }

  #created(made: M): Step<ObservedMachine> {
    this.advance();
    const machine = this.#index.get(made.number);
    if (machine?.power === 'failed') {
      const { host } = machine;
      return { ...failed('boot_failed', BOOT_FAILURE, 'certain'), ...(host !== undefined && { host }) };
    }
    if (machine?.power === 'building')
      return this.#pending(
        'building',
        (machine.until ?? 0) - this.#ports.clock.now(),
        `build-${machine.number}`,
      );
    if (machine?.power === 'running' || machine?.power === 'starting')
      return this.#reached(machine, 'running', 'starting');
    // The ref names an existing machine that has already left its boot phase.
    return failed('conflict', `the machine exists and is ${machine?.power ?? 'gone'}`, 'certain');
  }

  /** The outcome of an order that brings a machine to `goal` through `passing`. */
  #reached(
    { number }: M,
    goal: 'running' | 'stopped',
    passing: MachineRecord['power'],
  ): Step<ObservedMachine> {
    this.advance();
    const now = this.#ports.clock.now();
    const machine = this.#index.get(number);
    if (machine === undefined) return NO_MACHINE;
    const { power, until, bootedAt } = machine;
    if (power === 'running' && goal === 'running' && !isGuestUp(machine, now))
      return this.#pending('booting', (bootedAt ?? now) - now);
    if (power === goal) return done(this.show(machine));
    if (power === passing && until !== null) return this.#pending(passing, until - now);
    return failed('conflict', `the machine is ${power}`, 'none', until === null ? undefined : until - now);
  }

  #pending(phase: string, leftMs: number, cookie = phase): Step<never> {
    return pending(cookie, Math.min(leftMs, this.#ports.rules.longestPollMs ?? leftMs), phase);
  }

  #put(machine: M): void {
    const before = this.#index.get(machine.number);
    this.#ports.storage?.machine(before, machine);
    this.#keep(before, machine);
  }

  #keep(before: M | undefined, after: M | undefined): void {
    this.#index.replace(before, after);
    if (after?.until !== before?.until) this.#await(after);
  }

  #await(machine: M | undefined): void {
    if (machine?.until != null) this.#due.push(machine.until, machine.number);
  }
}

/** Cause of an end that nobody requested. */
function causeOf({ power }: MachineRecord): Cause {
  return power === 'stopped'
    ? 'reaped'
    : power === 'running' || power === 'paused'
      ? 'reclaimed'
      : 'destroyed';
}
