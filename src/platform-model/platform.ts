import type { Inventory } from '../orchestrator/model/inventory.ts';
import type {
  Call,
  HostAnswers,
  Listing,
  MachineSpec,
  ObservedMachine,
  OwnerRef,
  PlatformDriver,
  Presence,
  Step,
} from '../orchestrator/model/platform-driver.ts';
import { Machines } from './machines.ts';
import type { AttachmentRecord, MachineRecord, VolumeRecord } from './records.ts';
import type { Ports, VolumePhase } from './rules.ts';
import { done, failed } from './steps.ts';
import { Volumes } from './volumes.ts';

/** The stored state of a platform when its process ended. */
export interface Stored<M extends MachineRecord> {
  machines: Iterable<M>;
  volumes: Iterable<VolumeRecord>;
  attachments: Iterable<AttachmentRecord>;
}

/** A compute platform in memory. Its clock and its source of randomness are passed in; it has no timers. */
export interface Platform<M extends MachineRecord> {
  readonly machines: Machines<M>;
  readonly volumes: Volumes<M>;
  /** Absent: the platform answers as one host. */
  readonly hosts?: Hosts<M>;
}

export function createPlatform<M extends MachineRecord>(ports: Ports<M>, stored?: Stored<M>): Platform<M> {
  const machines: Machines<M> = new Machines(ports, (machine) => volumes.release(machine), stored?.machines);
  const volumes = new Volumes(ports, machines, stored);
  return { machines, volumes };
}

/** The methods of a driver. */
export type Method =
  | Exclude<keyof PlatformDriver, 'manifest' | 'volumes' | 'writer' | 'consoleTail' | 'place' | 'close'>
  | `volumes.${'get' | 'list' | 'usage' | VolumePhase}`;

export type Answer = Presence<unknown> | Listing<unknown> | Step<unknown> | Inventory;

/**
 * Passes a call to the platform and its answer to the caller. `ref`: the resource; undefined for listings. `limits`:
 * only for calls that change something.
 */
export type Carry = <T extends Answer>(
  method: Method,
  ref: OwnerRef | undefined,
  call: () => T,
  limits?: Call,
) => Promise<T>;

const noCount: Inventory = { answer: 'unknown', reason: 'this platform does not count' };

/** Makes a driver for a platform in this process. */
export function driverOf<M extends MachineRecord>(
  { machines, volumes, hosts }: Platform<M>,
  manifest: PlatformDriver['manifest'],
  carry: Carry = async (_method, _ref, call) => call(),
): Omit<PlatformDriver, 'volumes'> & Required<Pick<PlatformDriver, 'volumes'>> {
  const list = (): Listing<ObservedMachine> => ({ answer: 'listed', items: machines.list() });
  const order = (ref: OwnerRef, call: () => Step<ObservedMachine>): Step<ObservedMachine> =>
    hosts === undefined ? call() : hosts.order(ref, call);
  const remove = (ref: OwnerRef, cookie: string | null, call: () => Step<null>): Step<null> =>
    hosts === undefined ? call() : hosts.remove(ref, cookie, call);
  return {
    manifest,
    get: (ref) => carry('get', ref, () => (hosts ?? machines).get(ref)),
    list: () => carry('list', undefined, () => (hosts === undefined ? list() : hosts.list())),
    create: (spec, cookie, limits) =>
      carry('create', spec.ref, () => (hosts ?? machines).create(spec, cookie), limits),
    stop: (ref, _cookie, limits) => carry('stop', ref, () => order(ref, () => machines.stop(ref)), limits),
    start: (ref, _cookie, limits) => carry('start', ref, () => order(ref, () => machines.start(ref)), limits),
    restart: (ref, id, _cookie, limits) =>
      carry('restart', ref, () => order(ref, () => machines.restart(ref, id)), limits),
    destroy: (ref, cookie, _order, limits) =>
      carry('destroy', ref, () => remove(ref, cookie, () => machines.destroy(ref)), limits),
    disown: (ref, cookie, limits) =>
      carry('disown', ref, () => remove(ref, cookie, () => machines.disown(ref)), limits),
    ...(machines.hasCounts && {
      inventory: (avoidHosts) =>
        carry('inventory', undefined, () => machines.inventory(avoidHosts) ?? noCount),
    }),
    volumes: {
      get: (ref) => carry('volumes.get', ref, () => volumes.get(ref)),
      list: () => carry('volumes.list', undefined, () => ({ answer: 'listed', items: volumes.list() })),
      ...(manifest.volumeUsage === true && {
        usage: () => carry('volumes.usage', undefined, () => ({ answer: 'listed', items: volumes.usage() })),
      }),
      create: (spec, cookie, limits) =>
        carry('volumes.create', spec.ref, () => volumes.create(spec, cookie), limits),
      attach: (ref, machine, _cookie, limits) =>
        carry('volumes.attach', ref, () => volumes.attach(ref, machine), limits),
      detach: (ref, machine, _cookie, limits) =>
        carry('volumes.detach', ref, () => volumes.detach(ref, machine), limits),
      resize: (ref, sizeGb, _cookie, limits) =>
        carry('volumes.resize', ref, () => volumes.resize(ref, sizeGb), limits),
      destroy: (ref, _cookie, _order, limits) =>
        carry('volumes.destroy', ref, () => volumes.destroy(ref), limits),
    },
    close: async () => undefined,
  };
}

/** A host of the platform. Its machines keep running in every `state`. */
export interface PlatformHost {
  name: string;
  /** `unconfigured`: the driver does not ask it. */
  state: 'answers' | 'silent' | 'unconfigured';
  /** Since when it answers, in virtual milliseconds. */
  answersSince: number;
}

const SILENT = failed('transient', 'a host does not answer', 'possible');

/** The hosts of a platform, each with its own machines. Answers cover only the hosts that answer. */
export class Hosts<M extends MachineRecord> {
  readonly all: readonly PlatformHost[];
  readonly #machines: Machines<M>;
  readonly #places = new Map<number, PlatformHost>();

  constructor(machines: Machines<M>, names: readonly string[]) {
    this.#machines = machines;
    this.all = names.map((name) => ({ name, state: 'answers', answersSince: 0 }));
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

  /** Runs a stop, start or restart. */
  order(ref: OwnerRef, call: () => Step<ObservedMachine>): Step<ObservedMachine> {
    if (this.#machines.of(ref).some((one) => this.isReached(one))) return this.#shownIn(call());
    return this.asked().silent.length > 0 ? SILENT : failed('gone', 'no host has such a machine');
  }

  /** Runs a destroy or disown. A cookie comes from a removal that the machine's host began, so the machine existed. */
  remove(ref: OwnerRef, cookie: string | null, call: () => Step<null>): Step<null> {
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
