import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { IncusApi, Instance } from './api.ts';
import { classify, IncusRefusal } from './errors.ts';
import { hedged } from './hedged.ts';
import { refsByName } from './identity.ts';
import { isUnknown } from './translate.ts';

/** The instances of a platform. */
export interface InstanceList {
  instances: readonly Instance[];
  /** Of all that there are, also of those that could not be read. */
  names: readonly string[];
  /** Members that do not tell what became of their instances. */
  silent: ReadonlySet<string>;
}

/** For so long Incus may take to list all instances before each is read by itself. */
const LIST_MS = 2_000;
/** For so long a member may take to show one instance. */
const ONE_MS = 2_000;
const AT_ONCE_PER_MEMBER = 4;

/**
 * Lists instances, also while a member has just lost its power: until Incus takes it for offline, after
 * `cluster.offline_threshold`, it waits for that member in each listing. The names are in the database of every member.
 */
export class InstanceReader {
  readonly #api: IncusApi;
  /** The member that each instance was last seen on. */
  #places: ReadonlyMap<string, string> = new Map();
  #refs: ReadonlyMap<string, OwnerRef> = new Map();

  constructor(api: IncusApi) {
    this.#api = api;
  }

  /** Of the last reading, see {@link refsByName}. */
  get refs(): ReadonlyMap<string, OwnerRef> {
    return this.#refs;
  }

  /** `state`: also where they are reached. @throws as {@link IncusApi} */
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
      if (isRefused) throw new Error('no instance is shown where their list is refused');
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

  /** Those of each member beside those of the others; a member that is silent once is not asked again. */
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
          // Where it is was never seen: then nobody knows whose silence this is.
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

/** Whether the member that has the instance is the problem, and not the request. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof IncusRefusal)) return true;
  return ['transient', 'internal'].includes(classify(error));
}
