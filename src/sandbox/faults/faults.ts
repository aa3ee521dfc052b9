import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { FaultInjector } from '../../platform-model/call-faults.ts';
import type { Answer, Carry, Method } from '../../platform-model/platform.ts';
import type { Random } from '../../ports/clock.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Exchange, Layer, SandboxProvider } from '../provider.ts';
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
import type { FaultClock, HttpFault, MachineFault, SshFault, Strike } from './fault.ts';

export type FaultTarget = Pick<SandboxProvider, 'platform' | 'ownerOf'>;

export interface FaultDeps {
  clock: FaultClock;
  seed: string;
  seeded(seed: string): Pick<Random, 'next'>;
  /** Providers by name. */
  providers: ReadonlyMap<string, FaultTarget>;
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
  weather?: string;
}

/** Called for each strike, with the request if there is one. */
export type OnStrike = (event: FaultEvent, request: Request | undefined) => void;

interface SavedFaults {
  made: number;
  weathers: number;
  struck: number;
  armed: SavedFault[];
  events: FaultEvent[];
}

const MAX_EVENTS = 10_000;
/** Poll interval of a step that a fault holds. */
const ASK_AGAIN_MS = 1_000;
const LONG_MS = 3_600_000;

/** The faults of a sandbox: the armed ones, and their strikes. */
export class Faults {
  readonly #deps: FaultDeps;
  #armed: ArmedFault[] = [];
  readonly #injectors = new Map<string, FaultInjector>();
  #made = 0;
  #weathers = 0;
  #struck = 0;
  #events: FaultEvent[] = [];
  readonly #listeners = new Set<OnStrike>();

  constructor(deps: FaultDeps) {
    this.#deps = deps;
  }

  /** Arms a fault. A machine fault strikes at once if it can. @throws {ApiError} */
  async arm<N extends FaultName>(
    name: N,
    options: Arming<N> = {} as Arming<N>,
    weather?: string,
  ): Promise<ArmedFault> {
    const checked = checkedArming(name, options, this.#deps.providers);
    const armed = this.#make({ id: `fault-${++this.#made}`, name, options: checked, weather });
    for (const provider of this.#injectors.keys()) await this.#toMachines(provider, undefined);
    return armed;
  }

  get isArmed(): boolean {
    return this.#armed.some(({ isOver }) => !isOver);
  }

  /** Lists the faults that may still strike, and with `all` also the others. */
  list({ all = false }: { all?: boolean } = {}): ArmedView[] {
    return this.#armed.filter((armed) => all || !armed.isOver).map((armed) => armed.toJSON());
  }

  /** Disarms the fault of that id. Returns false if there is none. */
  disarm(id: string): boolean {
    const armed = this.#armed.find((candidate) => candidate.id === id && !candidate.isOver);
    armed?.disarm();
    return armed !== undefined;
  }

  nextWeather(): string {
    return `weather-${++this.#weathers}`;
  }

  /** Disarms all faults, or those of an account, a weather or `any` weather, and releases hanging calls. */
  clear({ account, weather }: { account?: string; weather?: string } = {}): void {
    for (const armed of this.#armed) {
      const isMeant =
        (account === undefined || armed.options.account === account) &&
        (weather === undefined ||
          armed.weather === weather ||
          (weather === 'any' && armed.weather !== undefined));
      if (isMeant) armed.disarm();
    }
    this.#armed = this.#armed.filter(({ isOver }) => !isOver);
    if (account === undefined && weather === undefined)
      for (const injector of this.#injectors.values()) injector.release();
  }

  #make(given: ConstructorParameters<typeof ArmedFault>[0]): ArmedFault {
    const { clock, seed: own, seeded } = this.#deps;
    const { seed = own } = given.options as Arming;
    const armed = new ArmedFault(given, { clock, draw: (what) => seeded(`${seed}/${what}`).next() });
    this.#armed.push(armed);
    this.#armed.sort((a, b) => faultNames.indexOf(a.name) - faultNames.indexOf(b.name));
    return armed;
  }

  save(): SavedFaults {
    const armed = this.#armed.filter(({ isOver }) => !isOver).map((each) => each.save());
    return {
      made: this.#made,
      weathers: this.#weathers,
      struck: this.#struck,
      armed,
      events: [...this.#events],
    };
  }

  /** Disarms the current faults and loads the saved ones. */
  load({ made, weathers, struck, armed, events }: SavedFaults): void {
    this.clear();
    this.#made = made;
    this.#weathers = weathers;
    this.#struck = struck;
    this.#events = [...events];
    for (const each of armed) this.#make(each);
  }

  reset(): void {
    this.load({ made: 0, weathers: 0, struck: 0, armed: [], events: [] });
  }

  /** The last 10,000 strikes. */
  get events(): readonly FaultEvent[] {
    return this.#events;
  }

  onStrike(listener: OnStrike): void {
    this.#listeners.add(listener);
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
      if (this.#has('machine')) await this.#toMachines(provider, undefined);
      const answer = await injector.carry(method, ref, call);
      if (!this.#has('machine')) return answer;
      await this.#toMachines(provider, undefined);
      return askedAgainSoon(answer);
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

  #has(layer: 'platform' | 'machine' | 'ssh'): boolean {
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

  #note({ id, name, weather }: ArmedFault, occasion: Occasion): void {
    const { resource, request } = occasion;
    const event: FaultEvent = {
      number: ++this.#struck,
      at: this.#deps.clock.now(),
      fault: name,
      id,
      step: stepOf(occasion),
      ...(resource !== undefined && { resource }),
      ...(weather !== undefined && { weather }),
    };
    this.#events.push(event);
    if (this.#events.length > MAX_EVENTS) this.#events.shift();
    for (const listener of this.#listeners) listener(event, request);
  }

  async #planned(provider: string, method: Method, ref: OwnerRef | undefined) {
    const occasion = { provider, on: { call: method }, ...(await this.#ownerOf(provider, ref)) };
    for (const armed of this.#armed) {
      if (armed.fault.layer !== 'platform') continue;
      const strike = this.#strike(armed, occasion);
      if (strike !== undefined) return armed.fault.fault(strike, method);
    }
    return 'none';
  }

  /** Applies due faults to machines. `poll` is a request that reads one instance or all. */
  async #toMachines(provider: string, poll: Occasion | undefined): Promise<void> {
    const due = this.#armed.filter(({ fault, isOver }) => fault.layer === 'machine' && !isOver);
    const target = due.length === 0 ? undefined : this.#deps.providers.get(provider);
    if (target === undefined) return;
    const { machines } = target.platform;
    for (const armed of due) {
      const fault = armed.fault as MachineFault;
      if (armed.isCounted && !isPollOfMachines(poll)) continue;
      for (const { spec } of machines.all()) {
        const owner = await target.ownerOf(spec.ref);
        const [machine] = machines.of(spec.ref);
        if (machine === undefined || !fault.fits(machine, owner?.status)) continue;
        const occasion = { provider, resource: owner?.id, account: owner?.account };
        if (armed.isCounted && poll?.resource !== undefined && poll.resource !== owner?.id) continue;
        const strike = this.#strike(armed, occasion);
        if (strike !== undefined) fault.happen(strike, { machines, machine });
      }
    }
  }

  async #ownerOf(
    provider: string,
    ref: OwnerRef | undefined,
  ): Promise<{ resource: string | undefined; account: string | undefined }> {
    const owner = ref === undefined ? undefined : await this.#deps.providers.get(provider)?.ownerOf(ref);
    return { resource: owner?.id, account: owner?.account };
  }

  #machineAt(provider: string, { host, port }: { host: string; port: number }): OwnerRef | undefined {
    const machines = this.#deps.providers.get(provider)?.platform.machines.list() ?? [];
    return machines.find(({ endpoint }) => endpoint?.publicIp === host && endpoint.sshPort === port)?.ref;
  }
}

function isHttp(fault: { layer: string }): fault is HttpFault {
  return fault.layer === 'connection' || fault.layer === 'answer' || fault.layer === 'status';
}

function occasionOf({ provider, request, account }: Exchange): Occasion {
  const path = new URL(request.url).pathname.replace(/^\/(v1|api)(?=\/)/, '');
  return { provider, account, on: { method: request.method, path }, resource: resourceOf(path) };
}

function isPollOfMachines(poll: Occasion | undefined): boolean {
  return (
    poll?.on !== undefined &&
    'method' in poll.on &&
    /^\/instances(\/[^/]+)?$/.test(poll.on.path) &&
    poll.on.method === 'GET'
  );
}

/** Shortens the poll interval of a step that a fault holds for years, so that the fault's end is noticed. */
function askedAgainSoon<T extends Answer>(answer: T): T {
  const isHeld = 'outcome' in answer && answer.outcome === 'pending' && answer.pollAfterMs > LONG_MS;
  return isHeld ? { ...answer, pollAfterMs: ASK_AGAIN_MS } : answer;
}
