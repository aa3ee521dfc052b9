import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Carry } from '../../platform-model/platform.ts';
import type { Random } from '../../ports/clock.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { assertRoute } from '../operations.ts';
import type { Layer, Targets } from '../provider.ts';
import { withFullName } from '../settings.ts';
import { ArmedFaults, type FaultEvent, type OnStrike, type SavedArmed } from './armed-faults.ts';
import { type ArmedFault, type ArmedView, type Arming, checkedArming } from './arming.ts';
import type { FaultName } from './catalog/catalog.ts';
import type { FaultClock, TlsFault } from './fault.ts';
import { httpFaults } from './layers/http.ts';
import { MachineFaults, sshFaults } from './layers/machines.ts';
import { PlatformFaults, type SavedStuck } from './layers/platform.ts';

interface Deps {
  clock: FaultClock;
  seed: string;
  seeded(seed: string): Pick<Random, 'next'>;
  providers: Targets;
  /** The names of the providers, and of the marketplace if there is one. */
  servers(): readonly string[];
  /** Default of `must_strike`, except for a fault with a `probability`. */
  mustStrike: boolean;
  /** Machines and volumes whose transition waits for something else than time. */
  held(): readonly { provider: string; ref: OwnerRef }[];
}

interface SavedFaults extends SavedArmed {
  stuck: SavedStuck;
}

/** In place of a provider: the address that all servers of the sandbox share. */
const ADDRESS = 'sandbox';

/** The faults of a sandbox: it arms and disarms them, and has one layer for each place in which they strike. */
export class Faults {
  readonly #deps: Deps;
  readonly #armed: ArmedFaults;
  readonly #machines: MachineFaults;
  readonly #platform: PlatformFaults;
  /** Between the client and the server. */
  readonly layer: Layer;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#armed = new ArmedFaults({ ...deps, disarmed: (id) => this.#platform.release(id) });
    this.#machines = new MachineFaults(this.#armed, deps.providers);
    this.#platform = new PlatformFaults(this.#armed, deps.providers);
    this.layer = httpFaults(this.#armed, this.#machines);
  }

  /** Arms a fault. A machine fault strikes at once if it can. @throws {ApiError} */
  async arm<N extends FaultName>(name: N, options: Arming<N> = {} as Arming<N>): Promise<ArmedFault> {
    const servers = this.#deps.servers();
    const must_strike = this.#deps.mustStrike && (options.probability ?? 1) === 1;
    const checked = withFullName(checkedArming(name, { must_strike, ...options }), servers);
    for (const route of [options.route ?? []].flat())
      assertRoute(checked.provider === undefined ? servers : [checked.provider], route);
    const armed = this.#armed.add(name, checked);
    this.#machines.forget();
    for (const provider of this.#deps.providers.keys()) await this.#machines.strike(provider, undefined);
    if (armed.fault.layer === 'platform') this.#platform.askAgain(armed, this.#deps.held());
    return armed;
  }

  get isArmed(): boolean {
    return this.#armed.all.some(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
  }

  /** Whether an armed fault has had an occasion after `time`, and may strike another one. */
  hasOccasions(time: number): boolean {
    return this.#armed.all.some(({ seenAt = time, isOver }) => seenAt > time && !isOver);
  }

  /** The resources whose work no passing of time continues before `until`. */
  stuck(): { id: string; until: number }[] {
    return this.#platform.stuck();
  }

  /** Lists the faults that may still strike, and with `all` also the others. */
  list({ all = false }: { all?: boolean } = {}): ArmedView[] {
    return this.#armed.all.filter((armed) => all || !armed.isOver).map((armed) => armed.toJSON());
  }

  /** The faults that had to strike, and did not. Also those that were disarmed. */
  unstruck(): ArmedView[] {
    return this.#armed.unstruck().map((armed) => armed.toJSON());
  }

  /** Disarms the fault of that id. Returns false if there is none. */
  disarm(id: string): boolean {
    const armed = this.#armed.all.find((candidate) => candidate.id === id && !candidate.isOver);
    armed?.disarm();
    return armed !== undefined;
  }

  /** Disarms all faults. */
  clear(): void {
    this.#armed.clear();
  }

  save(): SavedFaults {
    return { ...this.#armed.save(), stuck: this.#platform.save() };
  }

  /** Disarms the current faults and loads the saved ones. */
  load({ stuck, ...armed }: SavedFaults): void {
    this.#platform.load([]);
    this.#machines.forget();
    this.clear();
    this.#platform.load(stuck);
    this.#armed.load(armed);
  }

  reset(): void {
    this.load({ made: 0, armed: [], events: [], stuck: [] });
  }

  /** The last 10,000 strikes. */
  get events(): readonly FaultEvent[] {
    return this.#armed.events;
  }

  onStrike(listener: OnStrike): void {
    this.#armed.onStrike(listener);
  }

  /** Faults of a TLS handshake that begins now. Returns the one that strikes it. */
  handshake(): TlsFault | undefined {
    const occasion = { provider: ADDRESS, resource: undefined };
    for (const armed of this.#armed.all)
      if (armed.fault.layer === 'tls' && this.#armed.strike(armed, occasion) !== undefined)
        return armed.fault;
    return undefined;
  }

  /** Faults of the calls of a provider's driver. */
  carry(provider: string): Carry {
    return this.#platform.carry(provider, this.#machines);
  }

  /** Faults of the SSH proof of a provider's machines. */
  probe(provider: string, own: SshProbe): SshProbe {
    return sshFaults(this.#armed, this.#deps.providers, provider, own);
  }

  /** Whether an armed fault makes a provider's platform list fewer machines than there are. */
  falsifiesLists(provider: string): boolean {
    return this.#platform.falsifiesLists(provider);
  }
}
