import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { IncusApi, Instance } from './api.ts';
import { type Identified, identify, isProvedCopy, isTemporary } from './identity.ts';
import type { InstanceReader } from './instances.ts';
import { isMove, Operations } from './operations.ts';
import { hasPartOfMark, isMarked, isName, isOurs, isUnknown, refOf } from './translate.ts';

/** The result of a search for a machine. */
export type Found =
  | {
      is: 'ours';
      instance: Instance;
      /** Incus has not renamed it back yet. */
      isMoving: boolean;
      /** Names of other instances with its mark that may be the machine. Only {@link Finder.search} fills it. */
      doubtful: readonly string[];
    }
  /** Incus is still writing its record. */
  | { is: 'coming'; since: string }
  /** Another instance has its name. */
  | { is: 'foreign'; silent: ReadonlySet<string> }
  /** `silent`: members whose instances could not be read. */
  | { is: 'absent'; silent: ReadonlySet<string> }
  | { is: 'unknown'; reason: string };

interface Marked extends Identified {
  all: readonly Instance[];
  names: readonly string[];
  silent: ReadonlySet<string>;
}

/** Finds machines by their mark, since an operator may have renamed or moved them. */
export class Finder {
  readonly #api: IncusApi;
  readonly #instances: InstanceReader;
  readonly #operations: Operations;

  constructor({ api, instances }: { api: IncusApi; instances: InstanceReader }) {
    this.#api = api;
    this.#instances = instances;
    this.#operations = new Operations(api);
  }

  /** Finds a machine under its own name, or else among all instances. @throws as {@link IncusApi} */
  async find(ref: OwnerRef): Promise<Found> {
    const named = await this.#named(ref);
    return typeof named === 'object' ? named : this.#search(ref, named === 'taken');
  }

  /**
   * Finds a machine under its own name only. For a create, which reads all instances before it makes one.
   *
   * @throws as {@link IncusApi}
   */
  async findByName(ref: OwnerRef): Promise<Found> {
    const named = await this.#named(ref);
    if (named !== 'absent') return typeof named === 'object' ? named : this.#search(ref, true);
    const underWay = await this.#underWay(ref, false);
    if (underWay !== undefined) return underWay;
    // The record may have been written, or the operation ended, between the two reads.
    const again = await this.#named(ref);
    if (typeof again === 'object') return again;
    return this.#absent(ref, await this.#api.instanceNames(), new Set());
  }

  async #named(ref: OwnerRef): Promise<Found | 'absent' | 'taken'> {
    if (!isName(ref)) return { is: 'absent', silent: new Set() };
    const instance = await this.#api.instance(ref);
    if (instance === undefined) return 'absent';
    if (isUnreadable(instance)) return { is: 'unknown', reason: unknownOf(instance) };
    if (isOurs(instance) && !isProvedCopy(instance))
      return { is: 'ours', instance, isMoving: false, doubtful: [] };
    if (!isMarked(instance) && hasPartOfMark(instance))
      return { is: 'unknown', reason: `${ref} has only a part of Berth's mark (user.berth.*)` };
    return 'taken';
  }

  /** Like {@link find}, but checks all instances for other candidates too. @throws as {@link IncusApi} */
  async search(ref: OwnerRef): Promise<Found> {
    const found = await this.find(ref);
    if (found.is !== 'ours' || found.instance.name !== ref) return found;
    return settled(ref, await this.#among(ref, await this.marked(ref))) ?? found;
  }

  /** All instances with its mark, under any name. */
  async marked(ref: OwnerRef): Promise<Marked> {
    const { instances, names, silent } = await this.#instances.read({ state: false });
    const all = instances.filter((one) => isMarked(one) && refOf(one) === ref);
    return { ...identify(ref, all), all, names, silent };
  }

  /** Concludes absence only from two reads, with no operation between them that could hide the machine. */
  async #search(ref: OwnerRef, isNameTaken: boolean): Promise<Found> {
    const found = await this.#among(ref, await this.marked(ref));
    // It may be in removal: the second read decides.
    if (typeof found === 'object') return found;
    const underWay = await this.#underWay(ref, isNameTaken);
    if (underWay !== undefined) return underWay;
    const again = await this.marked(ref);
    const late = settled(ref, await this.#among(ref, again));
    if (late !== undefined) return late;
    return isNameTaken
      ? { is: 'foreign', silent: again.silent }
      : this.#absent(ref, again.names, again.silent);
  }

  /** Operations of Incus that may hide the machine. */
  async #underWay(ref: OwnerRef, isNameTaken: boolean): Promise<Found | undefined> {
    const running = (await this.#operations.on(ref)).filter(({ status_code: code }) => code < 200);
    const making = running.find(({ description }) => /^Creating/.test(description));
    if (making !== undefined && !isNameTaken) return { is: 'coming', since: making.created_at };
    const moving = running.find(isMove);
    return moving && { is: 'unknown', reason: `Incus is still running "${moving.description}" of ${ref}` };
  }

  /** A 404 may refer to something that the instance needs, such as its pool. */
  #absent(ref: OwnerRef, names: readonly string[], silent: ReadonlySet<string>): Found {
    return names.includes(ref)
      ? { is: 'unknown', reason: `Incus lists ${ref}, but does not find it` }
      : { is: 'absent', silent };
  }

  /** `changed`: it was listed, but is no longer there under that name. */
  async #among(
    ref: OwnerRef,
    { machine, copies, all, isUnclear }: Marked,
  ): Promise<Found | 'changed' | undefined> {
    if (isUnclear)
      return {
        is: 'unknown',
        reason: `${namesOf(all)} have the mark of ${ref}, and Berth cannot tell which one is the machine`,
      };
    if (machine === undefined) return undefined;
    const instance = await this.#api.instance(machine.name);
    if (instance === undefined || refOf(instance) !== ref) return 'changed';
    if (isUnreadable(instance)) return { is: 'unknown', reason: unknownOf(instance) };
    const doubtful = copies.filter((one) => !isProvedCopy(one) && !isTemporary(one));
    return {
      is: 'ours',
      instance,
      isMoving: isTemporary(instance) && (await this.#operations.areMoving([ref, instance.name])),
      doubtful: doubtful.map(({ name }) => name),
    };
  }

  /** Maps instance names to refs of machines. An instance without Berth's mark maps to its own name. */
  async refsOf(names: readonly string[]): Promise<Map<string, OwnerRef>> {
    if (names.length === 0) return new Map();
    const known = this.#instances.refs;
    if (names.every((name) => known.has(name))) return new Map(known);
    await this.#instances.read({ state: false });
    return new Map(this.#instances.refs);
  }
}

/** Incus shows the state Error if the instance's member cannot report on it. */
function isUnreadable(instance: Instance): boolean {
  return isUnknown(instance) || instance.state === null;
}

/** Without a cluster there is no member that could be silent. */
function unknownOf({ name, location }: Instance): string {
  return location === 'none'
    ? `Incus shows ${name} in the state Error`
    : `the member ${location} does not report on it`;
}

function namesOf(instances: readonly Instance[]): string {
  return instances.map(({ name }) => name).join(', ');
}

function settled(ref: OwnerRef, found: Found | 'changed' | undefined): Found | undefined {
  return found === 'changed' ? { is: 'unknown', reason: `the instance of ${ref} has just changed` } : found;
}
