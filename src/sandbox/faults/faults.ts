import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Carry } from '../../platform-model/platform.ts';
import type { Random } from '../../ports/clock.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { assertRoute } from '../operations.ts';
import type { Layer, Targets } from '../provider.ts';
import { withFullName } from '../settings.ts';
import {
  ArmedFault,
  type ArmedFaults,
  type ArmedView,
  type Arming,
  checkedArming,
  type Occasion,
  type SavedFault,
  stepOf,
} from './arming.ts';
import { type FaultName, faultNames } from './catalog/catalog.ts';
import type { Fault, FaultClock, TlsFault, Trigger } from './fault.ts';
import { httpFaults } from './layers/http.ts';
import { MachineFaults, sshFaults } from './layers/machines.ts';
import { PlatformFaults, type SavedStuck } from './layers/platform.ts';

interface FaultEvent {
  at: number;
  fault: FaultName;
  /** The id of the armed fault. */
  id: string;
  /** The requests or calls that are counted together. */
  step: string;
  resource?: string;
}

interface Deps {
  clock: FaultClock;
  seed: string;
  seeded(seed: string): Pick<Random, 'next'>;
  providers: Targets;
  /** The names of the providers, and of the marketplace if there is one. */
  servers(): readonly string[];
  /** Default of `must_trigger`, except for a fault with a `probability`. */
  mustTrigger: boolean;
  /** Machines and volumes whose transition waits for something else than time. */
  held(): readonly { provider: string; ref: OwnerRef }[];
  /** Called each time that a fault triggers. */
  triggered(fault: FaultName): void;
}

interface SavedFaults {
  made: number;
  armed: SavedFault[];
  events: FaultEvent[];
  stuck: SavedStuck;
}

/** In place of a provider: the address that all servers of the sandbox share. */
const ADDRESS = 'sandbox';
const MAX_EVENTS = 10_000;

/** The faults of a sandbox: it arms and disarms them, and has one layer for each place in which they trigger. */
export class Faults implements ArmedFaults {
  readonly clock: FaultClock;
  readonly #deps: Deps;
  readonly #all: ArmedFault[] = [];
  /** Those that must trigger. */
  readonly #must = new Set<ArmedFault>();
  #made = 0;
  #events: FaultEvent[] = [];
  readonly #machines: MachineFaults;
  readonly #platform: PlatformFaults;
  /** Between the client and the server. */
  readonly layer: Layer;

  constructor(deps: Deps) {
    this.clock = deps.clock;
    this.#deps = deps;
    this.#machines = new MachineFaults(this, deps.providers);
    this.#platform = new PlatformFaults(this, deps.providers);
    this.layer = httpFaults(this, this.#machines);
  }

  /** Arms a fault. A machine fault triggers at once if it can. @throws {ApiError} */
  async arm<N extends FaultName>(name: N, options: Arming<N> = {} as Arming<N>): Promise<ArmedFault> {
    const servers = this.#deps.servers();
    const must_trigger = this.#deps.mustTrigger && (options.probability ?? 1) === 1;
    const checked = withFullName(checkedArming(name, { must_trigger, ...options }), servers);
    for (const route of [options.route ?? []].flat())
      assertRoute(checked.provider === undefined ? servers : [checked.provider], route);
    const armed = this.#make({
      id: `fault-${++this.#made}`,
      name,
      options: checked,
      seen: 0,
      hits: 0,
      counts: [],
      armedAt: this.clock.now(),
      seenAt: undefined,
    });
    this.#machines.forget();
    for (const provider of this.#deps.providers.keys()) await this.#machines.trigger(provider, undefined);
    if (armed.fault.layer === 'platform') this.#platform.askAgain(armed, this.#deps.held());
    return armed;
  }

  get all(): readonly ArmedFault[] {
    return this.#all;
  }

  get isArmed(): boolean {
    return this.#all.some(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
  }

  has(layer: Fault['layer']): boolean {
    return this.#all.some(({ fault, isOver }) => fault.layer === layer && !isOver);
  }

  /** Whether an armed fault has had an occasion after `time`, and may trigger at another one. */
  hasOccasions(time: number): boolean {
    return this.#all.some(({ seenAt = time, isOver }) => seenAt > time && !isOver);
  }

  /** Lists the faults that may still trigger, and with `all` also the others. */
  list({ all = false }: { all?: boolean } = {}): ArmedView[] {
    return this.#all.filter((armed) => all || !armed.isOver).map((armed) => armed.toJSON());
  }

  /** The faults that were required to trigger and never did, disarmed ones included. */
  untriggered(): ArmedView[] {
    return [...this.#must].filter(({ isUntriggered }) => isUntriggered).map((armed) => armed.toJSON());
  }

  /** Disarms the fault of that id. Returns false if there is none. */
  disarm(id: string): boolean {
    const armed = this.#all.find((candidate) => candidate.id === id && !candidate.isOver);
    armed?.disarm();
    return armed !== undefined;
  }

  /** Disarms all faults and removes them. */
  clear(): void {
    for (const armed of this.#all.splice(0)) armed.disarm();
  }

  save(): SavedFaults {
    // Connections are not kept: nothing is left of a fault that affected as many as it may.
    const lasting = this.#all.filter(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
    return {
      made: this.#made,
      armed: lasting.map((each) => each.save()),
      events: [...this.#events],
      stuck: this.#platform.save(),
    };
  }

  /** Disarms the current faults and loads the saved ones. */
  load({ made, armed, events, stuck }: SavedFaults): void {
    this.#platform.load([]);
    this.#machines.forget();
    this.clear();
    this.#platform.load(stuck);
    this.#must.clear();
    this.#made = made;
    this.#events = [...events];
    for (const each of armed) this.#make(each);
  }

  /** The last 10,000 times that a fault triggered. */
  get events(): readonly FaultEvent[] {
    return this.#events;
  }

  /** Faults of a TLS handshake that begins now. Returns the one that it triggers. */
  handshake(): TlsFault | undefined {
    const occasion = { provider: ADDRESS, resource: undefined };
    for (const armed of this.#all)
      if (armed.fault.layer === 'tls' && this.trigger(armed, occasion) !== undefined) return armed.fault;
    return undefined;
  }

  /** Faults of the calls of a provider's driver. */
  carry(provider: string): Carry {
    return this.#platform.carry(provider, this.#machines);
  }

  /** Faults of the SSH proof of a provider's machines. */
  probe(provider: string, own: SshProbe): SshProbe {
    return sshFaults(this, this.#deps.providers, provider, own);
  }

  /** Whether an armed fault makes a provider's platform list fewer machines than there are. */
  falsifiesLists(provider: string): boolean {
    const list = { provider, on: 'list', resource: undefined };
    return this.#all.some((armed) => armed.fault.layer === 'platform' && armed.fits(list));
  }

  /** Counts the occasion if the fault fits it, and records it. Returns undefined if the fault does not trigger. */
  trigger(armed: ArmedFault, occasion: Occasion): Trigger<Record<string, unknown>> | undefined {
    const trigger = armed.fits(occasion) ? armed.trigger(occasion) : undefined;
    if (trigger === undefined) return undefined;
    const { id, name: fault } = armed;
    this.#events.push({
      at: this.clock.now(),
      fault,
      id,
      step: stepOf(occasion),
      resource: occasion.resource,
    });
    if (this.#events.length > MAX_EVENTS) this.#events.shift();
    this.#deps.triggered(fault);
    return trigger;
  }

  #make(saved: SavedFault): ArmedFault {
    const { seed: own, seeded } = this.#deps;
    const { seed = own } = saved.options as { seed?: string | number };
    const armed = new ArmedFault(saved, {
      clock: this.clock,
      draw: (what) => seeded(`${seed}/${what}`).next(),
      disarmed: () => this.#platform.release(saved.id),
    });
    this.#all.push(armed);
    if (armed.options.must_trigger) this.#must.add(armed);
    this.#all.sort((a, b) => faultNames.indexOf(a.name) - faultNames.indexOf(b.name));
    return armed;
  }
}
