import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { type IncusApi, type Instance, SINGLE } from './api.ts';
import { hedged } from './client.ts';
import { classify, IncusRefusal } from './errors.ts';
import { refsByName } from './identity.ts';
import { isUnknown } from './translate.ts';

export interface InstanceList {
  instances: readonly Instance[];
  /** Names of all instances, including those that could not be read. */
  names: readonly string[];
  /** Members that do not report on their instances. A single daemon that answers is never silent. */
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
  /** The cluster member on which each instance was last seen. */
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
        return await this.#keep(
          state ? await this.#api.instances() : await this.#api.instancesWithoutState(),
        );
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

  /**
   * A list also shows a container that is just ending in the state Error. So each instance in that state is read again,
   * individually, before its member counts as silent.
   */
  async #keep(listed: readonly Instance[]): Promise<InstanceList> {
    const names = listed.map(({ name }) => name);
    const known = listed.filter((instance) => !isUnknown(instance));
    const lost = listed.filter(isUnknown);
    const members = [...lost, ...known].filter(({ location }) => location !== SINGLE);
    this.#places = new Map(members.map(({ name, location }) => [name, location]));
    if (lost.length === 0) return { instances: listed, names, silent: new Set() };
    const again = await this.#readEach(lost.map(({ name }) => name)).catch(() => undefined);
    const read = new Map(again?.instances.map((instance) => [instance.name, instance]));
    const instances = listed.map((instance) => read.get(instance.name) ?? instance);
    return { instances, names, silent: new Set(membersOf(instances.filter(isUnknown))) };
  }

  async #oneByOne(): Promise<InstanceList> {
    const names = await this.#api.instanceNames();
    return { ...(await this.#readEach(names)), names };
  }

  /** Reads each instance individually, the members in parallel. A silent member is not asked again. */
  async #readEach(names: readonly string[]): Promise<Pick<InstanceList, 'instances' | 'silent'>> {
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
    for (const name of membersOf(instances.filter(isUnknown))) silent.add(name);
    return { instances, silent };
  }
}

/** The cluster members that have these instances. */
function membersOf(instances: readonly Instance[]): string[] {
  return instances.map(({ location }) => location).filter((name) => name !== SINGLE);
}

/** Whether the instance's member is the cause, and not the request. */
function isSilence(error: unknown): boolean {
  if (!(error instanceof IncusRefusal)) return true;
  return ['transient', 'internal'].includes(classify(error));
}
