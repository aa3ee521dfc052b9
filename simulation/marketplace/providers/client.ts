import { type OrchestratorClient, ProviderError } from '../../../src/client/orchestrator-client.ts';
import { plainProviderClient } from '../../../test/support/doubles/plain-provider.ts';
import type { ProviderFaults, ProviderMethod } from '../../../test/support/doubles/provider-faults.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { MarketBase } from './market-base.ts';
import type { SimulatedProvider } from './simulated-provider.ts';

/** What can go wrong with a call, and how often compared with the others. */
const FAULTS = {
  refuse: 2,
  hang: 2,
  loseBefore: 2,
  loseAfter: 4,
  late: 2,
  garbage: 3,
  fail: 2,
  failAfter: 2,
  unauthorized: 1,
  limited: 1,
  deny: 3,
  twin: 2,
};
export type MarketFault = keyof typeof FAULTS;
/** The provider shows the catalog and no resource, as for the key of another account. */
const DENY_ALL = 'denyAll';
const CATALOG: readonly ProviderMethod[] = ['listConfigurations', 'listAvailability', 'listVolumeLocations'];

/** Faults of the answer only: the request is carried out. */
const APPLIED: readonly MarketFault[] = ['loseAfter', 'garbage', 'failAfter'];
const WRITES = /^(create|delete|start|stop|attach|detach|restart|resize)/;
const TIMEOUT_MS = 10_000;

type Through = ProviderFaults['through'];
type Call = Parameters<Through>[1];

/** A provider as one process of a replica reaches it: with latency and faults. */
export function marketClient(
  world: MarketBase,
  provider: SimulatedProvider,
  process: ServerProcess,
  chance: Chance,
  beforeCall: () => void = () => undefined,
): OrchestratorClient {
  const path = new ProviderPath(world, provider, chance);
  const through: Through = (method, call, commit) => {
    beforeCall();
    return process.reach(() => path.through(method, call, commit));
  };
  return plainProviderClient(provider.plain, { through });
}

class ProviderPath {
  readonly #world: MarketBase;
  readonly #provider: SimulatedProvider;
  readonly #chance: Chance;

  constructor(world: MarketBase, provider: SimulatedProvider, chance: Chance) {
    this.#world = world;
    this.#provider = provider;
    this.#chance = chance;
  }

  async through<T>(method: ProviderMethod, call: Call, commit: () => T): Promise<T> {
    const { scheduler, faultCounts, journal } = this.#world;
    this.#world.calls++;
    await scheduler.sleep(this.#latencyMs());
    if (method === 'getInstance') this.#polled(call.id ?? '');
    if (this.#deniesAll(method)) return this.#denyAll(method, call.id);
    const fault = this.#draw(method, call);
    const apply = (): T => this.#commit(method, call, commit);
    if (fault === undefined) {
      const answer = this.#answer(method, apply());
      await scheduler.sleep(this.#latencyMs());
      return answer;
    }
    faultCounts.set(fault, (faultCounts.get(fault) ?? 0) + 1);
    journal.note(this.#provider.id, `${method} ${call.id ?? ''}: ${fault}`);
    return this.#fail(fault, method, call, apply);
  }

  #deniesAll(method: ProviderMethod): boolean {
    const { scheduler, isCalm } = this.#world;
    return !isCalm && scheduler.now < this.#provider.deniesUntil && !CATALOG.includes(method);
  }

  #denyAll<T>(method: ProviderMethod, id?: string): T {
    const { faultCounts, journal } = this.#world;
    faultCounts.set(DENY_ALL, (faultCounts.get(DENY_ALL) ?? 0) + 1);
    journal.note(this.#provider.id, `${method} ${id ?? ''}: ${DENY_ALL}`);
    if (method === 'listInstances') return [] as T;
    if (id === undefined) throw toError('unauthorized', method);
    this.#provider.denied.add(id);
    // The real client treats a 404 as deleted; for a volume it also says that the deletion was not accepted.
    if (method === 'deleteInstance') return null as T;
    if (method === 'deleteVolume') return false as T;
    throw toError('deny', method);
  }

  async #fail<T>(fault: MarketFault, method: ProviderMethod, call: Call, apply: () => T): Promise<T> {
    const { scheduler } = this.#world;
    const timeoutMs = call.options?.timeoutMs ?? TIMEOUT_MS;
    if (fault === 'deny' && method === 'deleteInstance') return null as T;
    if (fault === 'twin') return this.#twin(apply);
    if (APPLIED.includes(fault)) attempt(apply);
    if (fault === 'late' && WRITES.test(method))
      scheduler.after(timeoutMs + this.#chance.whole(100, 30_000), () => attempt(apply));
    if (fault === 'late' || fault === 'hang') await scheduler.sleep(timeoutMs);
    throw toError(fault, method);
  }

  #twin<T>(apply: () => T): T {
    const { living } = this.#provider;
    return living.length === 0 ? apply() : (structuredClone(this.#chance.pick(living)) as T);
  }

  #draw(method: ProviderMethod, { id }: Call): MarketFault | undefined {
    const { scheduler, scenario, isCalm } = this.#world;
    if (isCalm) return undefined;
    if (scheduler.now < this.#provider.outageUntil)
      return this.#chance.pick(['refuse', 'hang', 'fail', 'garbage', 'loseAfter']);
    if (!this.#chance.happens(scenario.callFaultRate)) return undefined;
    const isDelete = method === 'deleteInstance' && this.#chance.happens(0.4);
    const fault = isDelete ? 'deny' : this.#chance.weighted(FAULTS);
    // A create that is answered with the machine of another one.
    if (fault === 'twin') return method === 'createInstance' ? fault : undefined;
    if (fault !== 'deny') return fault;
    return this.#mayDeny(method, id) ? fault : undefined;
  }

  /** One machine is denied once: a second 404, and a list that lacks it, are a loss that counts. */
  #mayDeny(method: ProviderMethod, id = ''): boolean {
    const machine = this.#provider.machines.get(id);
    if (machine === undefined || machine.hasBeenDenied) return false;
    if (method !== 'getInstance' && method !== 'deleteInstance') return false;
    machine.hasBeenDenied = true;
    return true;
  }

  #commit<T>(method: ProviderMethod, { args, id }: Call, commit: () => T): T {
    this.#world.scheduler.noteActivity();
    if (method === 'deleteInstance')
      this.#world.inspector.deletes(this.#provider.id, this.#provider.machines.get(id ?? ''));
    if (method !== 'createVolume') {
      const result = structuredClone(commit());
      this.#provider.recordStatuses();
      return result;
    }
    const key = String(args[1]);
    const known = this.#provider.volumeOf(key);
    if (known !== undefined) return structuredClone(this.#provider.plain.getVolume(known)) as T;
    const made = commit();
    this.#provider.volumeMade(key, (made as { id: string }).id);
    return structuredClone(made);
  }

  /** A list may lack what was made just now. */
  #answer<T>(method: ProviderMethod, truth: T): T {
    const { scheduler, scenario, isCalm } = this.#world;
    if (method !== 'listInstances' || isCalm || scenario.listLagMs === 0) return truth;
    const since = scheduler.now - scenario.listLagMs;
    const { machines } = this.#provider;
    const isShown = ({ id }: { id: string }) => (machines.get(id)?.madeAt ?? 0) <= since;
    return (truth as { id: string }[]).filter(isShown) as T;
  }

  #polled(id: string): void {
    const machine = this.#provider.machines.get(id);
    if (machine !== undefined) machine.lastPolledAt = this.#world.scheduler.now;
  }

  #latencyMs(): number {
    return this.#chance.happens(0.05) ? this.#chance.whole(500, 3_000) : this.#chance.whole(1, 120);
  }
}

function toError(fault: MarketFault, method: ProviderMethod): ProviderError {
  const open = { mayHaveHappened: WRITES.test(method) };
  switch (fault) {
    case 'refuse':
      return new ProviderError('unreachable', `${method}: nobody is reached`);
    case 'unauthorized':
      return new ProviderError('unauthorized', `${method}: 401`, { status: 401 });
    case 'limited':
      return new ProviderError('limited', `${method}: 429`, { status: 429 });
    case 'deny':
      return new ProviderError('not_found', `${method}: 404`, { status: 404, code: 'not_found' });
    case 'garbage':
      return new ProviderError('invalid', `${method}: no JSON`, { status: 200, ...open });
    case 'fail':
    case 'failAfter':
      return new ProviderError('failed', `${method}: 500`, { status: 500, ...open });
    default:
      return new ProviderError('timeout', `${method}: no whole answer`, open);
  }
}

/** Carries out a request whose answer nobody gets. */
function attempt(commit: () => unknown): void {
  try {
    commit();
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
  }
}
