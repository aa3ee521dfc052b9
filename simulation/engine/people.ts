import type { OwnerRef } from '../../src/orchestrator/model/platform-driver.ts';
import type { Chance } from '../kernel/chance.ts';
import type { BaseWorld } from '../kernel/world.ts';
import type { Engine, EngineHost, Machine } from './engine.ts';
import type { PeopleRates } from './scenario.ts';

type Deed = keyof PeopleRates;

type PeopleWorld = BaseWorld & { readonly engine: Engine };

/** Who is told of what people do, before they do it. */
export interface PeopleObserver {
  touched(machine: Machine, deed: Deed): void;
}

/** Operators of the hosts, who work there without Berth. */
export class People {
  readonly #world: PeopleWorld;
  readonly #chance: Chance;
  readonly #rates: PeopleRates;
  readonly #observer: PeopleObserver;
  /** Brings back what was undefined. */
  readonly #toRestore = new Set<() => void>();
  /** By attempt: ends the protection of its machine. */
  readonly #protections = new Map<OwnerRef, () => void>();
  #count = 0;

  constructor(world: PeopleWorld, chance: Chance, rates: PeopleRates, observer: PeopleObserver) {
    this.#world = world;
    this.#chance = chance;
    this.#rates = rates;
    this.#observer = observer;
  }

  /** Draws what they do before the next command, and does it. */
  act(): void {
    const { hands } = this.#world.engine;
    const can = (deed: Deed): boolean =>
      (deed !== 'meddle' && deed !== 'protect') || hands[deed] !== undefined;
    const deeds = (Object.keys(this.#rates) as Deed[]).filter(can);
    for (const deed of deeds) if (this.#chance.happens(this.#rates[deed])) this.#do(deed);
  }

  #do(deed: Deed): void {
    const { engine } = this.#world;
    const host = this.#chance.pick(engine.hosts);
    if (deed === 'silence') this.#silence(host);
    else if (deed === 'evacuate') this.#evacuate(host);
    else {
      const machines = engine.machines().filter(hasRun);
      if (machines.length > 0) this.#handle(this.#chance.pick(machines), deed);
    }
  }

  #handle(machine: Machine, deed: Exclude<Deed, 'silence' | 'evacuate'>): void {
    const { engine } = this.#world;
    const { hands } = engine;
    const name = `${deed}-${++this.#count}`;
    this.#observer.touched(machine, deed);
    if (deed === 'meddle') {
      const done = hands.meddle?.(machine, this.#chance);
      this.#note(machine, done ?? deed, done !== undefined);
      return;
    }
    if (deed === 'undefine') {
      this.#undefine(machine);
      return;
    }
    const does = {
      move: () => this.#move(machine),
      rename: () => hands.rename(machine, name),
      clone: () => hands.clone(machine, name),
      remove: () => hands.remove(machine),
      powerOff: () => hands.powerOff(machine),
      protect: () => this.#protect(machine),
    };
    this.#note(machine, deed, does[deed]());
  }

  /** Berth takes it for impossible that a machine leaves a host for one that was silent to it before. */
  #move(machine: Machine): boolean {
    const { hosts, hands } = this.#world.engine;
    const reached = hosts.filter(({ isSilent }) => !isSilent);
    if (!reached.some(({ name }) => name === machine.host)) return false;
    return hands.move(machine, this.#chance.pick(reached).name);
  }

  /** By accident: mostly it is noticed, and brought back. */
  #undefine(machine: Machine): void {
    const { engine, scheduler } = this.#world;
    const restore = engine.hands.undefine(machine);
    this.#note(machine, 'undefine', restore !== undefined);
    if (restore === undefined) return;
    const bringBack = (): void => {
      if (!this.#toRestore.delete(bringBack)) return;
      this.#note(machine, 'restore', true);
      restore();
    };
    this.#toRestore.add(bringBack);
    if (this.#chance.happens(0.7)) scheduler.after(this.#chance.between(5_000, 600_000), bringBack);
  }

  /** Some of these protections are ended later, and all others by {@link unprotect}. */
  #protect(machine: Machine): boolean {
    const { engine, scheduler } = this.#world;
    const { ref } = machine;
    const end = engine.hands.protect?.(machine);
    if (ref === undefined || end === undefined) return false;
    this.#protections.set(ref, end);
    if (this.#chance.happens(0.5))
      scheduler.after(this.#chance.between(60_000, 900_000), () => this.#endProtection(ref));
    return true;
  }

  #endProtection(ref: OwnerRef): void {
    this.#protections.get(ref)?.();
    this.#protections.delete(ref);
  }

  isProtected(ref: OwnerRef): boolean {
    return this.#protections.has(ref);
  }

  unprotect(): void {
    for (const ref of this.#protections.keys()) this.#endProtection(ref);
  }

  /** Somebody has looked at the alarms: what was undefined is brought back. */
  rest(): void {
    for (const bringBack of this.#toRestore) bringBack();
  }

  #silence(host: EngineHost): void {
    const { scheduler, journal } = this.#world;
    if (host.isSilent) return;
    const ms = this.#chance.between(10_000, this.#chance.happens(0.3) ? 900_000 : 120_000);
    host.isSilent = true;
    journal.note('engine', `${host.name} is silent for ${Math.round(ms / 1_000)} s`);
    scheduler.after(ms, () => {
      host.isSilent = false;
      journal.note('engine', `${host.name} answers again`);
    });
  }

  /** All that it has goes to other hosts, and it is silent then. */
  #evacuate(host: EngineHost): void {
    const { engine } = this.#world;
    const goals = engine.hosts.filter((one) => one !== host && !one.isSilent);
    if (goals.length === 0) return;
    for (const machine of engine.machines().filter((one) => one.host === host.name && hasRun(one))) {
      this.#observer.touched(machine, 'move');
      const goal = this.#chance.pick(goals);
      this.#note(machine, 'evacuate', !host.isSilent && engine.hands.move(machine, goal.name));
    }
    this.#silence(host);
  }

  #note({ name, host }: Machine, deed: string, isDone: boolean): void {
    if (isDone) this.#world.journal.note('a person', `${deed} of ${name} on ${host}`);
  }
}

/** A machine of ours that is not being made any more. */
const hasRun = ({ ref, isCopy, disk }: Machine): boolean =>
  ref !== undefined && !isCopy && disk?.content.guest !== undefined;
