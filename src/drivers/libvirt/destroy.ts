import { basename, dirname } from 'node:path';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { OnForeignSnapshot } from '../kit/foreign-snapshots.ts';
import type { Change } from './change.ts';
import { unmark } from './definition.ts';
import { hasProblem, VirshError } from './errors.ts';
import { type FoundMachine, type Member, readMachine } from './fleet.ts';
import { sweepHost } from './gpus/machine-gpus.ts';
import { listDomains } from './hosts/domains.ts';
import { runHostScript } from './hosts/host-facts.ts';
import { deleteLeftFiles, hasDisk, heldByCopy, proveGone } from './leftovers.ts';
import type { ChangingPlatform, MachineMethod } from './platform.ts';
import { deleteFile, filesOf, isFileOf, listFiles, poolFolder } from './pool.ts';
import { assertEnded, cutPower } from './power.ts';
import { powerOf } from './translate.ts';

const POLL_MS = 1_000;

/**
 * Destroys a machine on every host that has it. The domain is undefined last, so that a machine with remaining files
 * can be found. Files of the machine on hosts without its domain are deleted too. If no host has the domain, a silent
 * host may have it.
 */
export const destroyMachine: MachineMethod<'destroy'> = async (platform, ref, _cookie, order) => {
  const { fleet, change } = platform;
  const search = await fleet.find(ref);
  if (search.answer === 'unknown' && search.hosts === undefined)
    throw new VirshError('unreachable', search.reason);
  const machines = search.answer === 'found' ? [search.machine, ...search.others] : [];
  let step: Step<null> = done(null);
  for (const machine of machines) {
    const removed = await removeMachine(platform, machine, order);
    if (removed.outcome === 'failed') return removed;
    if (removed.outcome === 'pending') step = removed;
  }
  if (step.outcome !== 'done') return step;
  const { answered, silent } = search.hosts ?? { answered: [], silent: [] };
  const unread = [...silent];
  for (const host of fleet.hosts.filter(({ name }) => answered.includes(name))) {
    try {
      const held = await deleteLeftFiles(change, host, ref, order);
      if (held !== undefined) return failed('conflict', held);
    } catch (error) {
      if (!hasProblem(error, 'unreachable', 'no_pool')) throw error;
      unread.push(host.name);
    }
  }
  return machines.length > 0 ? step : unlessSilent(ref, unread);
};

/** The outcome of a removal: done, or failed if a silent host may still have the resource. */
export function unlessSilent(ref: OwnerRef, silent: readonly string[]): Step<null> {
  if (silent.length === 0) return done(null);
  return failed('transient', `${silent.join(', ')} may have ${ref}, but does not answer`, 'possible');
}

async function removeMachine(
  { config, log, change }: ChangingPlatform,
  machine: FoundMachine,
  order: DestroyOrder,
): Promise<Step<null>> {
  const { host, domain } = machine;
  const { ref, gpus } = domain.mark;
  await cutPower(change, machine);
  await assertEnded(machine);
  const files = await sortFiles(machine, change);
  const held = await removeSnapshots(change, machine, files, order, config.on_foreign_snapshot);
  if (held !== undefined) return held;
  for (const name of files.own) await deleteFile(change, host, name, order);
  const left = (await listFiles(host)).find((name) => files.own.includes(name));
  if (left !== undefined) throw new VirshError('busy', `${left} is still in the pool of ${host.name}`);
  // Checkpoints contain no data.
  const flags = ['--nvram', '--managed-save', '--snapshots-metadata', '--checkpoints-metadata'];
  await change.virsh(host, ['undefine', ...flags, '--', domain.uuid]);
  if ((await readMachine(host, ref)) !== undefined) return pending(host.name, POLL_MS);
  if (gpus.length > 0) await sweepHost(host, config.gpu_types, log, change);
  return done(null);
}

interface MachineFiles {
  /** Files in the pool that were made for it. */
  own: readonly string[];
  /** Files in the pool that are named after it but not made by Berth, such as snapshots. */
  foreign: readonly string[];
  /** Its other disks, except volumes. */
  others: readonly string[];
  /** A copy of the machine that uses one of its files as a disk. */
  copy: string | undefined;
}

/** Sorts the files of a machine. A file that another domain uses as a disk is excluded. */
async function sortFiles({ host, domain, live }: FoundMachine, change: Change): Promise<MachineFiles> {
  const { ref } = domain.mark;
  const names = await listFiles(host, change);
  const [folder, domains] = [await poolFolder(host), await listDomains(host, 'stored')];
  const beside = domains.filter(({ uuid }) => uuid !== domain.uuid);
  const isFree = (name: string): boolean => !beside.some((other) => hasDisk(other, name));
  const made = names.filter((name) => isFileOf(ref, name));
  // Its disk may have been renamed, with the machine's name as a prefix.
  const root = domain.disks[0]?.path ?? '';
  const isMoved =
    dirname(root) === folder &&
    !made.includes(filesOf(ref).disk) &&
    [ref, domain.name].some((stem) => basename(root).startsWith(`${stem}.`));
  const own = isMoved ? [...new Set([...made, basename(root)])] : made;
  const foreign = names.filter((name) => name.startsWith(`${ref}.`) && !own.includes(name));
  const known = [...own, ...foreign].map((name) => `${folder}/${name}`);
  const paths = new Set([...domain.disks, ...live.disks].flatMap(({ path }) => path ?? []));
  const isOther = (path: string): boolean =>
    !path.endsWith('.volume') && !known.includes(path) && isFree(basename(path));
  return {
    own: own.filter(isFree),
    foreign: foreign.filter(isFree),
    others: [...paths].filter(isOther),
    copy: beside.find((other) => other.mark?.ref === ref && own.some((name) => hasDisk(other, name)))?.name,
  };
}

/**
 * Handles an operator's snapshots: internal ones, disk files of the domain, and files named after it. Returns undefined
 * if none is left. Snapshots of a volume's disk are never removed, since they contain the volume's data.
 */
async function removeSnapshots(
  change: Change,
  { host, domain }: FoundMachine,
  { foreign, others, copy }: MachineFiles,
  order: DestroyOrder,
  policy: OnForeignSnapshot,
): Promise<Step<never> | undefined> {
  if (copy !== undefined) return failed('conflict', heldByCopy(host, copy, domain.mark.ref));
  const still = await thoseThere(host, others);
  if (policy === 'delete') for (const name of foreign) await deleteFile(change, host, name, order);
  const { ref } = domain.mark;
  const internal = policy === 'delete' ? [] : await internalSnapshots(host, domain.uuid);
  const left = [...internal, ...(policy === 'delete' ? [] : foreign), ...still];
  if (left.length === 0) return undefined;
  const remove = `Remove these files${internal.length > 0 ? `, and snapshots with virsh snapshot-delete ${domain.name}` : ''}`;
  const advice = policy === 'wait' ? `${remove}, or set platform.on_foreign_snapshot: delete` : remove;
  return failed('conflict', `files hold ${ref} on ${host.name}: ${left.join(', ')}. ${advice}`);
}

/** Snapshots inside the machine's disk, such as those of `virsh snapshot-create-as`. */
async function internalSnapshots({ virsh }: Member, uuid: string): Promise<string[]> {
  const text = await virsh(['snapshot-list', '--name', '--internal', '--', uuid]);
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : `snapshot ${line.trim()}`));
}

async function thoseThere({ shell, options }: Member, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const { lines } = await runHostScript(shell, { stateDir: options.state_dir }, ['exists', ...paths]);
  return lines.map(([, path = '']) => path);
}

/**
 * Releases a machine: replaces its mark with a release mark, on every host that has it. The domain and its disks stay
 * unchanged for their new owner. Its volumes stay Berth's and are detached. Its address stays taken, since its guest
 * uses it.
 */
export const disownMachine: MachineMethod<'disown'> = async (platform, ref, cookie) => {
  const { fleet, clock, change } = platform;
  const search = await fleet.find(ref);
  if (search.answer === 'unknown' && search.hosts === undefined)
    throw new VirshError('unreachable', search.reason);
  if (search.answer !== 'found') {
    const { hosts, left } = await proveGone(fleet.hosts, ref, search.hosts ?? { answered: [], silent: [] });
    return left === undefined ? unlessSilent(ref, hosts.silent) : failed('conflict', left);
  }
  const machines = [search.machine, ...search.others];
  for (const machine of machines) {
    const obstacle = await obstacleOf(machine);
    if (obstacle !== undefined) return failed('conflict', obstacle);
  }
  // A start from an earlier call may have arrived since the read.
  let mayBeOld = false;
  for (const { host } of machines) mayBeOld = (await change.fence(host)) || mayBeOld;
  if (mayBeOld) return disownMachine(platform, ref, cookie);
  for (const machine of machines) await disownOn(platform, machine, clock.now());
  return done(null);
};

/** Why the machine cannot be released. Undefined if it can. */
async function obstacleOf(machine: FoundMachine): Promise<string | undefined> {
  const { host, domain } = machine;
  const { ref } = domain.mark;
  const power = powerOf(machine);
  if (power !== 'stopped') return `${ref} is ${power} on ${host.name}: stop it first`;
  // A saved memory image contains the mark.
  const saved = await host.virsh(['list', '--all', '--uuid', '--with-managed-save']);
  if (!saved.split(/\s+/).includes(domain.uuid)) return undefined;
  return `${ref} has a managed save on ${host.name}: start and stop it first, or run virsh managedsave-remove ${domain.name}`;
}

async function disownOn(
  { config, log, change }: ChangingPlatform,
  machine: FoundMachine,
  at: number,
): Promise<void> {
  const { host, domain } = machine;
  const { ref, nat, gpus } = domain.mark;
  const volumes = domain.disks.flatMap(({ path }) => (path?.endsWith('.volume') === true ? path : []));
  await unmark(change, machine, { ref, at, hostPort: nat?.hostPort }, volumes);
  if (gpus.length > 0) await sweepHost(host, config.gpu_types, log, change);
}
