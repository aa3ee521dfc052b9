import { basename } from 'node:path';
import { idOf } from '../../orchestrator/model/attempt.ts';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { HostAnswers, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Change } from './change.ts';
import type { Host } from './client.ts';
import { type HostDomain, isMachine, uuidOf } from './domain-xml.ts';
import { isHostFailure, VirshError } from './errors.ts';
import { listDomains } from './hosts/domains.ts';
import { deleteFile, filesOf, isFileOf, listFiles } from './pool.ts';

interface LeftFiles {
  names: readonly string[];
  /** A copy of the machine that uses one of the files as a disk; the files must then not be deleted. */
  copy: string | undefined;
}

const NONE: LeftFiles = { names: [], copy: undefined };

/** Reads the files left. With `change`, no earlier call can make a file afterwards. @throws {VirshError} */
async function readLeftFiles(host: Host, ref: OwnerRef, change?: Change): Promise<LeftFiles> {
  const names = (await listFiles(host, change)).filter((name) => isFileOf(ref, name));
  if (names.length === 0) return NONE;
  const domains = await listDomains(host, 'stored');
  const own = domains.find(({ uuid }) => uuid === uuidOf(ref));
  if (own?.release !== undefined) return NONE;
  if (own !== undefined)
    throw new VirshError('busy', `${host.name} left ${ref} out of a listing, but has it`);
  // A domain with this name but without Berth's mark belongs to another owner, and so do its files.
  if (domains.some(({ name, mark }) => name === ref && mark === undefined)) return NONE;
  const users = domains.filter((domain) => names.some((name) => hasDisk(domain, name)));
  return {
    names: names.filter((name) => !users.some((user) => user.mark === undefined && hasDisk(user, name))),
    copy: users.find(({ mark }) => mark !== undefined)?.name,
  };
}

/**
 * Whether a domain uses the file. Compares only file names, since a file may have several paths. Seeds never count:
 * they contain secrets and belong to the machine, even if a copy uses them.
 */
export const hasDisk = ({ disks }: Pick<HostDomain, 'disks'>, name: string): boolean =>
  !name.endsWith('.seed') && disks.some(({ path }) => path !== undefined && basename(path) === name);

/**
 * Checks hosts without the domain for files of the machine. `left` are the files found. `reason` says why a host could
 * not answer.
 */
export async function proveGone(
  hosts: readonly Host[],
  ref: OwnerRef,
  { answered, silent }: HostAnswers,
): Promise<{ hosts: HostAnswers; left?: string; reason?: string }> {
  const unread: string[] = [];
  const found: string[] = [];
  let reason: string | undefined;
  const ask = async (host: Host): Promise<void> => {
    try {
      const { names, copy } = await readLeftFiles(host, ref);
      const data = names.filter((name) => [filesOf(ref).disk, filesOf(ref).seed].includes(name));
      if (data.length > 0) found.push(describe(host.name, data, copy));
    } catch (error) {
      if (!(error instanceof VirshError)) throw error;
      if (!isHostFailure(error) && error.problem !== 'no_pool') throw error;
      unread.push(host.name);
      reason = error.message;
    }
  };
  await Promise.all(hosts.filter(({ name }) => answered.includes(name)).map(ask));
  return {
    hosts: {
      answered: answered.filter((name) => !unread.includes(name)),
      silent: [...silent, ...unread],
    },
    ...(found.length > 0 && { left: found.join('; ') }),
    reason,
  };
}

function describe(host: string, names: readonly string[], copy: string | undefined): string {
  const what = `${host} has ${names.join(', ')}, but not its domain`;
  return copy === undefined
    ? `${what}: define it again (virsh define, from a backup of /etc/libvirt/qemu), or delete the instance, which removes these files`
    : `${what}: ${copy}, a copy of the machine, has its disk`;
}

/**
 * Deletes the files by their exact names. Returns why they cannot be deleted, or undefined if none is left.
 *
 * @throws {VirshError}
 */
export async function deleteLeftFiles(
  change: Change,
  host: Host,
  ref: OwnerRef,
  order: DestroyOrder,
): Promise<string | undefined> {
  const { names, copy } = await readLeftFiles(host, ref, change);
  if (copy !== undefined) return heldByCopy(host, copy, ref);
  for (const name of names) await deleteFile(change, host, name, order);
  return undefined;
}

export const heldByCopy = ({ name }: Host, copy: string, ref: OwnerRef): string =>
  `${copy} on ${name} is a copy of ${ref}, and has its disk: undefine it, or give it a disk of its own`;

const DATA = /^(.+)\.(qcow2|seed)$/;

/**
 * Disks and seeds in the pool with a name of Berth's whose machine is not on the host. `names` must be read before
 * `domains`: a create defines its domain before it makes files, and a delete removes the files first.
 */
export function findLeftovers(
  names: readonly string[],
  domains: readonly HostDomain[],
  images: ReadonlySet<string>,
): Map<OwnerRef, string[]> {
  const uuids = new Set(domains.map(({ uuid }) => uuid));
  const left = new Map<OwnerRef, string[]>();
  for (const name of names) {
    const ref = DATA.exec(name)?.[1] ?? '';
    const isOurs = idOf(ref) !== ref && !images.has(name);
    if (!isOurs || uuids.has(uuidOf(ref)) || domains.some((domain) => hasDisk(domain, name))) continue;
    left.set(ref, [...(left.get(ref) ?? []), name]);
  }
  return left;
}

/** Domains with Berth's mark that are copies of a machine. */
export const copiesIn = (domains: readonly HostDomain[], host: string) =>
  domains.flatMap((domain) =>
    domain.mark === undefined || isMachine(domain) ? [] : [{ ref: domain.mark.ref, name: domain.name, host }],
  );
