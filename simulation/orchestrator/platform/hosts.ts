import type { Inventory } from '../../../src/orchestrator/model/inventory.ts';
import type {
  HostAnswers,
  Listing,
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  Presence,
  Step,
} from '../../../src/orchestrator/model/platform-driver.ts';
import type { Machines } from '../../../src/platform-model/machines.ts';
import type { MachineCalls } from '../../../src/platform-model/platform.ts';
import type { MachineRecord } from '../../../src/platform-model/records.ts';
import { done, failed } from '../../../src/platform-model/steps.ts';

/** A host of the platform. Its machines keep running in every `state`. */
export interface PlatformHost {
  name: string;
  /** `unconfigured`: the driver does not ask it. */
  state: 'answers' | 'silent' | 'unconfigured';
}

const SILENT = failed('transient', 'a host does not answer', 'possible');

/** The hosts of a platform, each with its own machines. Answers cover only the hosts that answer. */
export class Hosts<M extends MachineRecord> implements MachineCalls {
  readonly all: readonly PlatformHost[];
  readonly #machines: Machines<M>;
  readonly #places = new Map<number, PlatformHost>();

  constructor(machines: Machines<M>, names: readonly string[]) {
    this.#machines = machines;
    this.all = names.map((name) => ({ name, state: 'answers' }));
  }

  asked(): HostAnswers {
    const of = (wanted: PlatformHost['state']): string[] =>
      this.all.flatMap(({ name, state }) => (state === wanted ? [name] : []));
    return { answered: of('answers'), silent: of('silent') };
  }

  /** Undefined: the machine was never placed. */
  of({ number }: MachineRecord): PlatformHost | undefined {
    return this.#places.get(number);
  }

  /** Moves the machine with its disk, as an operator would. */
  move({ number }: MachineRecord, host: PlatformHost): void {
    this.#places.set(number, host);
  }

  isReached(machine: MachineRecord): boolean {
    return this.of(machine)?.state === 'answers';
  }

  get(ref: OwnerRef): Presence<ObservedMachine> {
    const machine = this.#machines.shown(ref).find((one) => this.isReached(one));
    if (machine !== undefined) return { answer: 'observed', value: this.#show(machine) };
    const hosts = this.asked();
    return hosts.silent.length === 0
      ? { answer: 'gone', hosts }
      : { answer: 'unknown', reason: `${hosts.silent.join(', ')} does not answer`, hosts };
  }

  list(): Listing<ObservedMachine> {
    const hosts = this.asked();
    if (hosts.answered.length === 0) return { answer: 'unknown', reason: 'no host answers' };
    const reached = this.#machines.allShown().filter((machine) => this.isReached(machine));
    return { answer: 'listed', items: reached.map((machine) => this.#show(machine)), hosts };
  }

  /** A machine that exists on an unreachable host is not made a second time. */
  create(spec: MachineSpec, cookie: string | null): Step<ObservedMachine> {
    const own = this.#machines.of(spec.ref);
    const answering = this.all.filter(({ state }) => state === 'answers');
    if (answering.length === 0 || (own.length > 0 && !own.some((one) => this.isReached(one)))) return SILENT;
    const step = this.#machines.create(spec, cookie);
    for (const { number } of this.#machines.of(spec.ref))
      if (!this.#places.has(number))
        this.#places.set(number, answering[number % answering.length] as PlatformHost);
    return this.#shownIn(step);
  }

  stop(ref: OwnerRef): Step<ObservedMachine> {
    return this.#order(ref, () => this.#machines.stop(ref));
  }

  start(ref: OwnerRef): Step<ObservedMachine> {
    return this.#order(ref, () => this.#machines.start(ref));
  }

  restart(ref: OwnerRef, id: string): Step<ObservedMachine> {
    return this.#order(ref, () => this.#machines.restart(ref, id));
  }

  destroy(ref: OwnerRef, cookie: string | null): Step<null> {
    return this.#remove(ref, cookie, () => this.#machines.destroy(ref));
  }

  disown(ref: OwnerRef, cookie: string | null): Step<null> {
    return this.#remove(ref, cookie, () => this.#machines.disown(ref));
  }

  get hasCounts(): boolean {
    return this.#machines.hasCounts;
  }

  inventory(avoidHosts?: readonly string[]): Inventory | undefined {
    return this.#machines.inventory(avoidHosts);
  }

  #order(ref: OwnerRef, call: () => Step<ObservedMachine>): Step<ObservedMachine> {
    if (this.#machines.of(ref).some((one) => this.isReached(one))) return this.#shownIn(call());
    return this.asked().silent.length > 0 ? SILENT : failed('gone', 'no host has such a machine');
  }

  /** A cookie comes from a removal that the machine's host began, so the machine existed. */
  #remove(ref: OwnerRef, cookie: string | null, call: () => Step<null>): Step<null> {
    const own = this.#machines.of(ref);
    if (own.some((one) => this.isReached(one))) return call();
    const isRemoved = cookie !== null && own.length === 0;
    if (this.asked().silent.length > 0 && !isRemoved) return SILENT;
    return own.length > 0 ? done(null) : call();
  }

  #shownIn(step: Step<ObservedMachine>): Step<ObservedMachine> {
    if (step.outcome !== 'done') return step;
    const machine = this.#machines.shown(step.value.ref).find((one) => this.isReached(one));
    return machine === undefined ? step : done(this.#show(machine));
  }

  #show(machine: M): ObservedMachine {
    const host = this.of(machine)?.name;
    return { ...this.#machines.show(machine), ...(host !== undefined && { host }) };
  }
}
