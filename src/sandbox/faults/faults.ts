import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { FaultInjector, isStep } from '../../platform-model/call-faults.ts';
import type { Carry, Method } from '../../platform-model/platform.ts';
import type { Random } from '../../ports/clock.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import { assertRoute, withoutBase } from '../operations.ts';
import { isOf, type Ownership } from '../ownership.ts';
import type { Exchange, Layer, Owner, SandboxProvider } from '../provider.ts';
import { withFullName } from '../settings.ts';
import {
  ArmedFault,
  type ArmedView,
  type Arming,
  checkedArming,
  type Occasion,
  resourceOf,
  type SavedFault,
  stepOf,
} from './arming.ts';
import { type FaultName, faultNames } from './catalog/catalog.ts';
import type {
  FaultClock,
  HttpFault,
  MachineFault,
  PlatformFault,
  SshFault,
  Strike,
  TlsFault,
} from './fault.ts';

export type FaultTarget = Pick<SandboxProvider, 'platform' | 'ownerOf' | 'wake' | 'changes'>;

export interface FaultDeps {
  clock: FaultClock;
  seed: string;
  seeded(seed: string): Pick<Random, 'next'>;
  /** Providers by name. */
  providers: ReadonlyMap<string, FaultTarget>;
  /** The names of the providers, and of the marketplace if there is one. */
  servers(): readonly string[];
  /** Machines and volumes whose transition waits for something else than time. */
  held(): readonly { provider: string; ref: OwnerRef }[];
}

export interface FaultEvent {
  number: number;
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

interface SavedFaults {
  made: number;
  struck: number;
  armed: SavedFault[];
  events: FaultEvent[];
  stuck: [key: string, stuck: StuckCall][];
}

/** A call that has no effect until its fault is over. */
interface StuckCall {
  fault: string;
  provider: string;
  ref: OwnerRef;
  /** The id of its instance or volume. Absent for the remains of an earlier attempt. */
  resource: string | undefined;
  until: number;
}

const MAX_EVENTS = 10_000;
/** In place of a provider: the address that all servers of the sandbox share. */
const ADDRESS = 'sandbox';

/** The faults of a sandbox: the armed ones, and their strikes. */
export class Faults {
  readonly #deps: FaultDeps;
  #armed: ArmedFault[] = [];
  readonly #injectors = new Map<string, FaultInjector>();
  #made = 0;
  #struck = 0;
  #events: FaultEvent[] = [];
  readonly #listeners = new Set<OnStrike>();
  /** The last call for each machine and volume, if it is stuck. By provider and ref. */
  readonly #stuck = new Map<string, StuckCall>();
  /** The changes of each provider at the last check of its machines. */
  readonly #checked = new Map<string, number>();

  constructor(deps: FaultDeps) {
    this.#deps = deps;
  }

  /** Arms a fault. A machine fault strikes at once if it can. @throws {ApiError} */
  async arm<N extends FaultName>(name: N, options: Arming<N> = {} as Arming<N>): Promise<ArmedFault> {
    const servers = this.#deps.servers();
    const checked = withFullName(checkedArming(name, options), servers);
    for (const route of [options.route ?? []].flat())
      assertRoute(checked.provider === undefined ? servers : [checked.provider], route);
    const armed = this.#make({ id: `fault-${++this.#made}`, name, options: checked });
    this.#checked.clear();
    for (const provider of this.#injectors.keys()) await this.#toMachines(provider, undefined);
    if (armed.fault.layer === 'platform') this.#askAgain(armed);
    return armed;
  }

  get isArmed(): boolean {
    return this.#armed.some(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
  }

  /** Whether an armed fault has had an occasion after `time`, and may strike another one. */
  hasOccasions(time: number): boolean {
    return this.#armed.some(({ seenAt = time, isOver }) => seenAt > time && !isOver);
  }

  /** The resources whose work no passing of time continues before `until`. */
  stuck(): { id: string; until: number }[] {
    const now = this.#deps.clock.now();
    return [...this.#stuck.values()].flatMap(({ resource, ref, until }) =>
      until > now ? { id: resource ?? ref, until } : [],
    );
  }

  /** Lists the faults that may still strike, and with `all` also the others. */
  list({ all = false }: { all?: boolean } = {}): ArmedView[] {
    return this.#armed.filter((armed) => all || !armed.isOver).map((armed) => armed.toJSON());
  }

  get(id: string): ArmedFault | undefined {
    return this.#armed.find((armed) => armed.id === id);
  }

  /** The faults of an account that had to strike, and did not. */
  unstruck(account: string): ArmedView[] {
    return this.#armed
      .filter(({ options, isUnstruck }) => options.account === account && isUnstruck)
      .map((armed) => armed.toJSON());
  }

  /** Disarms the fault of that id. Returns false if there is none. */
  disarm(id: string): boolean {
    const armed = this.#armed.find((candidate) => candidate.id === id && !candidate.isOver);
    armed?.disarm();
    return armed !== undefined;
  }

  /** Disarms all faults, and releases hanging calls; or disarms those of an account. */
  clear({ account }: { account?: string } = {}): void {
    this.#armed = this.#armed.filter((armed) => {
      const isMeant = account === undefined || armed.options.account === account;
      if (isMeant) armed.disarm();
      return !isMeant;
    });
    if (account === undefined) for (const injector of this.#injectors.values()) injector.release();
  }

  #make(given: ConstructorParameters<typeof ArmedFault>[0]): ArmedFault {
    const { clock, seed: own, seeded } = this.#deps;
    const { seed = own } = given.options as Arming;
    const armed = new ArmedFault(given, {
      clock,
      draw: (what) => seeded(`${seed}/${what}`).next(),
      disarmed: ({ id }) => this.#release(id),
    });
    this.#armed.push(armed);
    this.#armed.sort((a, b) => faultNames.indexOf(a.name) - faultNames.indexOf(b.name));
    return armed;
  }

  /** Lets a new fault strike work that no passing of time continues. */
  #askAgain(armed: ArmedFault): void {
    for (const { provider, ref } of [...this.#stuck.values(), ...this.#deps.held()])
      if (armed.fitsProvider(provider)) this.#deps.providers.get(provider)?.wake(ref);
  }

  /** Continues the work that was stuck because of a fault. */
  #release(fault: string): void {
    for (const [key, { fault: by, provider, ref }] of this.#stuck) {
      if (by !== fault) continue;
      this.#stuck.delete(key);
      this.#deps.providers.get(provider)?.wake(ref);
    }
  }

  save(): SavedFaults {
    // Connections are not kept: nothing is left of a fault that struck as many as it may.
    const lasting = this.#armed.filter(({ isOver, isUsedUp }) => !isOver && !isUsedUp);
    const armed = lasting.map((each) => each.save());
    return {
      made: this.#made,
      struck: this.#struck,
      armed,
      events: [...this.#events],
      stuck: [...this.#stuck],
    };
  }

  /** Disarms the current faults and loads the saved ones. */
  load({ made, struck, armed, events, stuck }: SavedFaults): void {
    this.#stuck.clear();
    this.#checked.clear();
    this.clear();
    for (const [key, call] of stuck) this.#stuck.set(key, call);
    this.#made = made;
    this.#struck = struck;
    this.#events = [...events];
    for (const each of armed) this.#make(each);
  }

  reset(): void {
    this.load({ made: 0, struck: 0, armed: [], events: [], stuck: [] });
  }

  /** The last 10,000 strikes. */
  get events(): readonly FaultEvent[] {
    return this.#events;
  }

  onStrike(listener: OnStrike): void {
    this.#listeners.add(listener);
  }

  /** Faults of a TLS handshake that begins now. Returns the one that strikes it. */
  handshake(): TlsFault | undefined {
    const occasion = { provider: ADDRESS, resource: undefined };
    for (const armed of this.#armed)
      if (armed.fault.layer === 'tls' && this.#strike(armed, occasion) !== undefined) return armed.fault;
    return undefined;
  }

  /** HTTP faults, between the client and the server. */
  readonly layer: Layer = async (exchange, next) => {
    if (this.#armed.length === 0) return next(exchange.request);
    const occasion = occasionOf(exchange);
    await this.#toMachines(exchange.provider, occasion);
    return this.#ask(exchange.request, { ...occasion, request: exchange.request }, next, 0);
  };

  /** Faults of the calls of a provider's driver. */
  carry(provider: string): Carry {
    const injector = new FaultInjector(({ method, ref }) => {
      if (!this.#has('platform')) return 'none';
      return this.#planned(provider, method as Method, ref);
    }, this.#deps.clock);
    this.#injectors.set(provider, injector);
    return async (method, ref, call) => {
      await this.#toMachines(provider, undefined);
      const answer = await injector.carry(method, ref, call);
      await this.#toMachines(provider, undefined);
      return answer;
    };
  }

  /** Faults of the SSH proof of a provider's machines. */
  probe(provider: string, own: SshProbe): SshProbe {
    return {
      probe: async (target, keys, pinned, withinMs) => {
        const ask = () => own.probe(target, keys, pinned, withinMs);
        if (!this.#has('ssh')) return ask();
        const ref = this.#machineAt(provider, target);
        const occasion = { provider, ...(await this.#ownerOf(provider, ref)) };
        for (const armed of this.#armed) {
          const strike = armed.fault.layer === 'ssh' && this.#strike(armed, occasion);
          if (strike) return (armed.fault as SshFault).probe({ ...strike, keys, pinned, withinMs }, ask);
        }
        return ask();
      },
    };
  }

  /** Whether an armed fault makes a provider's platform list fewer machines than there are. */
  falsifiesLists(provider: string): boolean {
    const list = { provider, on: { call: 'list' }, resource: undefined };
    return this.#armed.some((armed) => armed.fault.layer === 'platform' && armed.fits(list));
  }

  #has(layer: 'platform' | 'ssh'): boolean {
    return this.#armed.some(({ fault, isOver }) => fault.layer === layer && !isOver);
  }

  /** Passes a request through the armed faults from the `index`th on. */
  async #ask(
    request: Request,
    occasion: Occasion,
    next: (request: Request) => Promise<Response>,
    index: number,
  ): Promise<Response> {
    for (const [offset, armed] of this.#armed.slice(index).entries()) {
      if (!isHttp(armed.fault)) continue;
      const strike = this.#strike(armed, occasion);
      if (strike === undefined) continue;
      return armed.fault.answer({ ...strike, request }, (changed = request) =>
        this.#ask(changed, occasion, next, index + offset + 1),
      );
    }
    return next(request);
  }

  #strike(armed: ArmedFault, occasion: Occasion): Strike<Record<string, unknown>> | undefined {
    const strike = armed.fits(occasion) ? armed.strike(occasion) : undefined;
    if (strike !== undefined) this.#note(armed, occasion);
    return strike;
  }

  #note({ id, name }: ArmedFault, occasion: Occasion): void {
    const { resource, request } = occasion;
    const event: FaultEvent = {
      number: ++this.#struck,
      at: this.#deps.clock.now(),
      fault: name,
      id,
      step: stepOf(occasion),
      ...(resource !== undefined && { resource }),
    };
    this.#events.push(event);
    if (this.#events.length > MAX_EVENTS) this.#events.shift();
    for (const listener of this.#listeners) listener(event, request);
  }

  async #planned(provider: string, method: Method, ref: OwnerRef | undefined) {
    const key = `${provider} ${ref}`;
    if (isStep({ method })) this.#stuck.delete(key);
    const on = { call: method };
    const fitting = this.#armed.filter(
      (armed) =>
        armed.fault.layer === 'platform' &&
        armed.fits({ provider, on, account: armed.options.account, resource: armed.resource }),
    );
    if (fitting.length === 0) return 'none';
    const occasion = { provider, on, ...(await this.#ownerOf(provider, ref)) };
    for (const armed of fitting) {
      const strike = this.#strike(armed, occasion);
      if (strike === undefined) continue;
      const planned = (armed.fault as PlatformFault).fault(strike, method);
      if (ref !== undefined && typeof planned === 'object' && planned.kind === 'stuck')
        this.#stuck.set(key, {
          fault: armed.id,
          provider,
          ref,
          resource: occasion.resource,
          until: strike.sureUntil,
        });
      return planned;
    }
    return 'none';
  }

  /**
   * Applies due faults to machines. `poll` is a request that reads one instance or all. Without a change since the last
   * check, only faults that count polls can strike.
   */
  async #toMachines(provider: string, poll: Occasion | undefined): Promise<void> {
    const isPoll = isPollOfMachines(poll);
    const due = this.#armed.filter(
      (armed) =>
        armed.fault.layer === 'machine' && armed.fitsProvider(provider) && (isPoll || !armed.isCounted),
    );
    const target = due.length === 0 ? undefined : this.#deps.providers.get(provider);
    if (target === undefined) return;
    const refs = target.platform.machines.all().map(({ spec }) => spec.ref);
    const isChecked = this.#checked.get(provider) === target.changes;
    this.#checked.set(provider, target.changes);
    for (const armed of due)
      if (!isChecked || armed.isCounted)
        for (const ref of refs) await this.#toMachine(armed, provider, ref, poll);
  }

  async #toMachine(
    armed: ArmedFault,
    provider: string,
    ref: OwnerRef,
    poll: Occasion | undefined,
  ): Promise<void> {
    const fault = armed.fault as MachineFault;
    const target = this.#deps.providers.get(provider);
    if (target === undefined) return;
    const { machines } = target.platform;
    const fitting = () => {
      const [machine] = machines.of(ref);
      return machine && fault.fits(machine) ? machine : undefined;
    };
    const owner = fitting() && (await target.ownerOf(ref));
    // It may have changed meanwhile.
    const machine = fitting();
    if (machine === undefined) return;
    if (fault.status !== undefined && fault.status !== owner?.status) return;
    const occasion = { provider, ...occasionPartOf(owner) };
    if (armed.isCounted && !isPollOf(poll, occasion)) return;
    const strike = this.#strike(armed, occasion);
    if (strike === undefined) return;
    fault.happen(strike, { machines, machine });
    target.wake(ref);
  }

  async #ownerOf(
    provider: string,
    ref: OwnerRef | undefined,
  ): Promise<Pick<Occasion, 'resource'> & Ownership> {
    const owner = ref === undefined ? undefined : await this.#deps.providers.get(provider)?.ownerOf(ref);
    return occasionPartOf(owner);
  }

  #machineAt(provider: string, { host, port }: { host: string; port: number }): OwnerRef | undefined {
    const machines = this.#deps.providers.get(provider)?.platform.machines.list() ?? [];
    return machines.find(({ endpoint }) => endpoint?.publicIp === host && endpoint.sshPort === port)?.ref;
  }
}

function occasionPartOf(owner: Owner | undefined): Pick<Occasion, 'resource'> & Ownership {
  return { resource: owner?.id, account: owner?.account, alsoOf: owner?.alsoOf };
}

function isHttp(fault: { layer: string }): fault is HttpFault {
  return fault.layer === 'connection' || fault.layer === 'answer' || fault.layer === 'status';
}

function occasionOf({ provider, request, ...ownership }: Exchange): Occasion {
  const path = withoutBase(new URL(request.url).pathname);
  return { provider, ...ownership, on: { method: request.method, path }, resource: resourceOf(path) };
}

/** Whether the request reads the machine: its instance, or all instances of its account. */
function isPollOf(poll: Occasion | undefined, machine: Occasion): boolean {
  if (poll?.account === undefined || !isPollOfMachines(poll)) return false;
  return isOf(poll.account, machine) && (poll.resource ?? machine.resource) === machine.resource;
}

function isPollOfMachines(poll: Occasion | undefined): boolean {
  if (poll?.on === undefined || !('method' in poll.on)) return false;
  return poll.on.method === 'GET' && /^\/instances(\/[^/]+)?$/.test(poll.on.path);
}
