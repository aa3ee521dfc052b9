import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { IncusApi, Instance } from './api.ts';
import { hedged } from './client.ts';
import { classify, IncusRefusal } from './errors.ts';
import { refsByName } from './identity.ts';
import { isUnknown } from './translate.ts';

export interface InstanceList {
  instances: readonly Instance[];
  /** Names of all instances, including those that could not be read. */
  names: readonly string[];
  /** Members that do not report on their instances. */
  silent: ReadonlySet<string>;
}

/** Time for listing all instances before each is also read individually, in milliseconds. */
const LIST_MS = 2_000;
/** Time limit for reading one instance, in milliseconds. */
const ONE_MS = 2_000;
const AT_ONCE_PER_MEMBER = 4;

/**
 * Lists instances, also while a member is down. Until Incus considers that member offline
 * (`cluster.offline_threshold`), each of its listings waits for it. Every member's database has the names.
 */
export class InstanceReader {
  readonly #api: IncusApi;
  /** The member on which each instance was last seen. */
  #places: ReadonlyMap<string, string> = new Map();
  #refs: ReadonlyMap<string, OwnerRef> = new Map();

  constructor(api: IncusApi) {
    this.#api = api;
  }

  /** Refs by instance name at the last reading, see {@link refsByName}. */
  get refs(): ReadonlyMap<string, OwnerRef> {
    return this.#refs;
  }

  /** Reads all instances. `state`: with their addresses. @throws as {@link IncusApi} */
  async read({ state }: { state: boolean }): Promise<InstanceList> {
    let isRefused = false;
    const whole = async (): Promise<InstanceList> => {
      try {
        return this.#keep(state ? await this.#api.instances() : await this.#api.instancesWithoutState());
      } catch (error) {
        isRefused = error instanceof IncusRefusal;
        throw error;
      }
    };
    const each = async (): Promise<InstanceList> => {
      if (isRefused) throw new Error('Incus refuses the list of instances');
      return this.#oneByOne();
    };
    try {
      const list = await hedged([whole, each], LIST_MS);
      this.#refs = refsByName(list.instances);
      return list;
    } catch (error) {
      throw error instanceof AggregateError ? error.errors[0] : error;
    }
  }

  #keep(instances: readonly Instance[]): InstanceList {
    const known = instances.filter((instance) => !isUnknown(instance));
    const lost = instances.filter(isUnknown);
    this.#places = new Map([
      ...lost.map(({ name, location }): [string, string] => [name, location]),
      ...known.map(({ name, location }): [string, string] => [name, location]),
    ]);
    return {
      instances,
      names: instances.map(({ name }) => name),
      silent: new Set(lost.map(({ location }) => location)),
    };
  }

  /** Reads each instance individually, the members in parallel. A silent member is not asked again. */
  async #oneByOne(): Promise<InstanceList> {
    const names = await this.#api.instanceNames();
    const groups = Map.groupBy(names, (name) => this.#places.get(name));
    const instances: Instance[] = [];
    const silent = new Set<string>();
    const readAll = async (queue: string[], member: string | undefined): Promise<void> => {
      for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
        if (member !== undefined && silent.has(member)) return;
        try {
          const instance = await this.#api.instance(name, ONE_MS);
          if (instance !== undefined) instances.push(instance);
        } catch (error) {
          // The instance was never seen on a member, so it is unknown which member is silent.
          if (member === undefined || !isSilence(error)) throw error;
          silent.add(member);
        }
      }
    };
    await Promise.all(
      [...groups].flatMap(([member, group]) =>
        Array.from({ length: AT_ONCE_PER_MEMBER }, () => readAll(group, member)),
      ),
    );
    for (const instance of instances) if (isUnknown(instance)) silent.add(instance.location);
    return { instances, names, silent };
  }
}

/** Whether the instance's member is the cause, and not the request. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof IncusRefusal)) return true;
  return ['transient', 'internal'].includes(classify(error));
}
