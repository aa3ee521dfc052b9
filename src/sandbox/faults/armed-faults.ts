import type { Random } from '../../ports/clock.ts';
import { ArmedFault, type Occasion, type SavedFault, stepOf } from './arming.ts';
import { type FaultName, faultNames } from './catalog/catalog.ts';
import type { Fault, FaultClock, Strike } from './fault.ts';

export interface FaultEvent {
  at: number;
  fault: FaultName;
  /** The id of the armed fault. */
  id: string;
  /** The requests or calls that are counted together. */
  step: string;
  resource?: string;
}

/** Called for each strike, with the request if there is one. */
export type OnStrike = (event: FaultEvent, request: Request | undefined) => void;

interface Deps {
  clock: FaultClock;
  seed: string;
  seeded(seed: string): Pick<Random, 'next'>;
  /** Called when the fault of that id is disarmed. */
  disarmed(id: string): void;
}

export interface SavedArmed {
  made: number;
  armed: SavedFault[];
  events: FaultEvent[];
}

const MAX_EVENTS = 10_000;

/** The armed faults of all layers in the order in which they strike, and their strikes. */
export class ArmedFaults {
  readonly clock: FaultClock;
  readonly #deps: Deps;
  readonly #all: ArmedFault[] = [];
  /** Those that must strike. */
  readonly #must = new Set<ArmedFault>();
  #made = 0;
  #events: FaultEvent[] = [];
  readonly #listeners = new Set<OnStrike>();

  constructor(deps: Deps) {
    this.clock = deps.clock;
    this.#deps = deps;
  }

  get all(): readonly ArmedFault[] {
    return this.#all;
  }

  /** The last 10,000 strikes. */
  get events(): readonly FaultEvent[] {
    return this.#events;
  }

  has(layer: Fault['layer']): boolean {
    return this.#all.some(({ fault, isOver }) => fault.layer === layer && !isOver);
  }

  onStrike(listener: OnStrike): void {
    this.#listeners.add(listener);
  }

  add(name: FaultName, options: Record<string, unknown>): ArmedFault {
    return this.#make({
      id: `fault-${++this.#made}`,
      name,
      options,
      seen: 0,
      hits: 0,
      counts: [],
      armedAt: this.clock.now(),
      seenAt: undefined,
    });
  }

  unstruck(): ArmedFault[] {
    return [...this.#must].filter(({ isUnstruck }) => isUnstruck);
  }

  /** Disarms all faults and removes them. */
  clear(): void {
    for (const armed of this.#all.splice(0)) armed.disarm();
  }

  /** Counts the occasion if the fault fits it, and records the strike. Returns undefined if it does not strike. */
  strike(armed: ArmedFault, occasion: Occasion): Strike<Record<string, unknown>> | undefined {
    const strike = armed.fits(occasion) ? armed.strike(occasion) : undefined;
    if (strike !== undefined) this.#note(armed, occasion);
    return strike;
  }

  save(): SavedArmed {
    // Connections are not kept: nothing is left of a fault that struck as many as it may.
    const lasting = this.#all.filter(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
    const armed = lasting.map((each) => each.save());
    return { made: this.#made, armed, events: [...this.#events] };
  }

  load({ made, armed, events }: SavedArmed): void {
    this.#must.clear();
    this.#made = made;
    this.#events = [...events];
    for (const each of armed) this.#make(each);
  }

  #make(saved: SavedFault): ArmedFault {
    const { clock, seed: own, seeded, disarmed } = this.#deps;
    const { seed = own } = saved.options as { seed?: string | number };
    const armed = new ArmedFault(saved, {
      clock,
      draw: (what) => seeded(`${seed}/${what}`).next(),
      disarmed: () => disarmed(saved.id),
    });
    this.#all.push(armed);
    if (armed.options.must_strike) this.#must.add(armed);
    this.#all.sort((a, b) => faultNames.indexOf(a.name) - faultNames.indexOf(b.name));
    return armed;
  }

  #note({ id, name }: ArmedFault, occasion: Occasion): void {
    const { resource, request } = occasion;
    const event = { at: this.clock.now(), fault: name, id, step: stepOf(occasion), resource };
    this.#events.push(event);
    if (this.#events.length > MAX_EVENTS) this.#events.shift();
    for (const listener of this.#listeners) listener(event, request);
  }
}
