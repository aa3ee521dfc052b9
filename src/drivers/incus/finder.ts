import { isRef } from '../../orchestrator/model/attempt.ts';
import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { type Failure, failed } from '../../platform-model/steps.ts';
import type { Instance } from './api.ts';
import { unlessConflict } from './errors.ts';
import { type Identified, identify, isProvedCopy, isTemporary } from './identity.ts';
import { areMoving, isMove, operationsOn, pathOf } from './operations.ts';
import type { Platform } from './platform.ts';
import { hasPartOfMark, isMarked, isName, isOurs, isUnknown, mark, refOf, UUID } from './translate.ts';

export type Found =
  | {
      is: 'ours';
      instance: Instance;
      /** Whether Incus has not renamed it back yet. */
      isMoving: boolean;
      /** Names of other instances with its mark that may be the machine. Only {@link searchMachine} fills it. */
      doubtful: readonly string[];
    }
  /** Incus is still writing its record. */
  | { is: 'coming'; since: string }
  /** Another instance has its name. */
  | ({ is: 'foreign' } & Unread)
  | ({ is: 'absent' } & Unread)
  /** `silent`: members that may have it, if no other member does. */
  | { is: 'unknown'; reason: string; silent?: ReadonlySet<string> };

interface Unread {
  /** Members whose instances could not be read. */
  silent: ReadonlySet<string>;
  /** Names of instances on these members that may be the machine: no attempt has such a name. */
  unread: readonly string[];
}

interface Marked extends Identified, Unread {
  all: readonly Instance[];
  names: readonly string[];
}

const ALL_READ: Unread = { silent: new Set(), unread: [] };

/**
 * Finds a machine under its own name, or else among all instances. Unknown if an instance that could not be read may be
 * the machine: it may have been renamed, and moved to that member.
 *
 * @throws as {@link IncusApi}
 */
export async function findMachine(platform: Platform, ref: OwnerRef): Promise<Found> {
  const found = await findRead(platform, ref);
  if ((found.is !== 'absent' && found.is !== 'foreign') || found.unread.length === 0) return found;
  const { silent, unread } = found;
  return {
    is: 'unknown',
    reason: `${[...silent].join(', ')} does not report on ${unread.join(', ')}, which may be ${ref}`,
    silent,
  };
}

/** Finds a machine among the instances that can be read. */
async function findRead(platform: Platform, ref: OwnerRef): Promise<Found> {
  const named = await findNamed(platform, ref);
  return typeof named === 'object' ? named : searchAll(platform, ref, named === 'taken');
}

/**
 * Finds a machine under its own name only. A create uses it, since it reads all instances before it makes one.
 *
 * @throws as {@link IncusApi}
 */
export async function findByName(platform: Platform, ref: OwnerRef): Promise<Found> {
  const named = await findNamed(platform, ref);
  if (named !== 'absent') return typeof named === 'object' ? named : searchAll(platform, ref, true);
  const underWay = await operationUnderWay(platform, ref, false);
  if (underWay !== undefined) return underWay;
  // The record may have been written, or the operation ended, between the two reads.
  const again = await findNamed(platform, ref);
  if (typeof again === 'object') return again;
  return absentUnlessListed(ref, await platform.api.instanceNames(), ALL_READ);
}

async function findNamed(platform: Platform, ref: OwnerRef): Promise<Found | 'absent' | 'taken'> {
  if (!isName(ref)) return { is: 'absent', ...ALL_READ };
  const instance = await platform.api.instance(ref);
  if (instance === undefined) return 'absent';
  if (isUnreadable(instance)) return { is: 'unknown', reason: unknownOf(instance) };
  if (isOurs(instance) && !isProvedCopy(instance))
    return { is: 'ours', instance, isMoving: false, doubtful: [] };
  if (!isMarked(instance) && hasPartOfMark(instance))
    return { is: 'unknown', reason: `${ref} has only a part of Berth's mark (user.berth.*)` };
  return 'taken';
}

/**
 * Finds a machine among the instances that can be read, and checks all of these for other candidates too.
 *
 * @throws as {@link IncusApi}
 */
export async function searchMachine(platform: Platform, ref: OwnerRef): Promise<Found> {
  const found = await findRead(platform, ref);
  if (found.is !== 'ours' || found.instance.name !== ref) return found;
  const among = await findAmong(platform, ref, await findMarked(platform, ref));
  if (among !== 'changed') return among ?? found;
  // Most often the machine was being removed, and is gone now.
  const again = await findRead(platform, ref);
  return again.is === 'ours' ? changed(ref) : again;
}

async function findMarked(platform: Platform, ref: OwnerRef): Promise<Marked> {
  const { instances, names, silent } = await platform.instances.read({ state: false });
  const all = instances.filter((one) => isMarked(one) && refOf(one) === ref);
  const read = new Set(instances.filter((one) => !isUnknown(one)).map(({ name }) => name));
  const unread = silent.size === 0 ? [] : names.filter((name) => !read.has(name) && !isRef(name));
  return { ...identify(ref, all), all, names, silent, unread };
}

/** Concludes absence only from two reads, with no operation between them that could hide the machine. */
async function searchAll(platform: Platform, ref: OwnerRef, isNameTaken: boolean): Promise<Found> {
  const found = await findAmong(platform, ref, await findMarked(platform, ref));
  // The machine may be in removal: the second read decides.
  if (typeof found === 'object') return found;
  const underWay = await operationUnderWay(platform, ref, isNameTaken);
  if (underWay !== undefined) return underWay;
  const again = await findMarked(platform, ref);
  const late = settled(ref, await findAmong(platform, ref, again));
  if (late !== undefined) return late;
  const { names, silent, unread } = again;
  return isNameTaken ? { is: 'foreign', silent, unread } : absentUnlessListed(ref, names, { silent, unread });
}

/** Operations of Incus that may hide the machine. */
async function operationUnderWay(
  platform: Platform,
  ref: OwnerRef,
  isNameTaken: boolean,
): Promise<Found | undefined> {
  const running = (await operationsOn(platform.api, ref)).filter(({ status_code: code }) => code < 200);
  const making = running.find(({ description }) => /^Creating/.test(description));
  if (making !== undefined && !isNameTaken) return { is: 'coming', since: making.created_at };
  const moving = running.find(isMove);
  return moving && { is: 'unknown', reason: `Incus is still running "${moving.description}" of ${ref}` };
}

/**
 * Concludes absence only if Incus does not list the name. A 404 may refer to something that the instance needs, such as
 * its pool.
 */
function absentUnlessListed(ref: OwnerRef, names: readonly string[], unread: Unread): Found {
  return names.includes(ref)
    ? { is: 'unknown', reason: `Incus lists ${ref}, but does not find it` }
    : { is: 'absent', ...unread };
}

/**
 * Finds the machine among the instances with its mark. `changed` means that it was renamed or removed between the
 * listing and this read.
 */
async function findAmong(
  platform: Platform,
  ref: OwnerRef,
  { machine, copies }: Marked,
): Promise<Found | 'changed' | undefined> {
  if (machine === undefined) return undefined;
  const instance = await platform.api.instance(machine.name);
  if (instance === undefined || refOf(instance) !== ref) return 'changed';
  if (isUnreadable(instance)) return { is: 'unknown', reason: unknownOf(instance) };
  const doubtful = copies.filter((one) => !isProvedCopy(one) && !isTemporary(one));
  return {
    is: 'ours',
    instance,
    isMoving: isTemporary(instance) && (await areMoving(platform.api, [ref, instance.name])),
    doubtful: doubtful.map(({ name }) => name),
  };
}

/** Maps instance names to refs of machines. An instance without Berth's mark maps to its own name. */
export async function refsOf(platform: Platform, names: readonly string[]): Promise<Map<string, OwnerRef>> {
  if (names.length === 0) return new Map();
  const known = platform.instances.refs;
  if (names.every((name) => known.has(name))) return new Map(known);
  await platform.instances.read({ state: false });
  return new Map(platform.instances.refs);
}

/** The machine under its current name, after its id was noted in its mark. */
export async function findOwn(platform: Platform, ref: OwnerRef): Promise<{ instance: Instance } | Failure> {
  const found = await findMachine(platform, ref);
  if (found.is !== 'ours')
    return found.is === 'unknown'
      ? failed('transient', found.reason)
      : failed('gone', `there is no instance ${ref}`);
  if (found.isMoving) return failed('transient', `Incus is moving ${ref}`);
  const { instance } = found;
  if (await isNoted(instance)) return { instance };
  await noteIdentity(platform, instance);
  return { instance: (await platform.api.instance(instance.name)) ?? instance };
}

/**
 * Notes the id in the mark of a machine that got another id by a move. It does so only if no other instance has the
 * mark, since the machine could be a copy.
 *
 * @returns false if the instance has changed since it was read
 */
export async function noteIdentity(platform: Platform, instance: Instance): Promise<boolean> {
  if (isNoted(instance)) return true;
  const { all } = await findMarked(platform, refOf(instance));
  return all.length !== 1 || note(platform, instance, { [mark.uuid]: instance.config[UUID] });
}

/** Changes its configuration. Returns false if the instance has changed since it was read. */
export async function note(
  { api, call }: Platform,
  { name, etag }: Instance,
  config: object,
): Promise<boolean> {
  const sending = api.client.send('PATCH', pathOf(name), { body: { config }, etag, call });
  return (await unlessConflict(sending)) !== undefined;
}

function isNoted({ config }: Instance): boolean {
  return config[UUID] === undefined || config[mark.uuid] === config[UUID];
}

/** Whether the instance cannot be read. Incus shows the state Error if the instance's member cannot report on it. */
function isUnreadable(instance: Instance): boolean {
  return isUnknown(instance) || instance.state === null;
}

/** Why the state of an instance is unknown. Without a cluster there is no member that could be silent. */
function unknownOf({ name, location }: Instance): string {
  return location === 'none'
    ? `Incus shows ${name} in the state Error`
    : `the member ${location} does not report on it`;
}

function settled(ref: OwnerRef, found: Found | 'changed' | undefined): Found | undefined {
  return found === 'changed' ? changed(ref) : found;
}

function changed(ref: OwnerRef): Found {
  return { is: 'unknown', reason: `the instance of ${ref} has just changed` };
}
