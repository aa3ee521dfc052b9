import { basename, dirname } from 'node:path';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Change } from './change.ts';
import type { Host } from './client.ts';
import { onProblem, VirshError } from './errors.ts';
import { descend, parseXml, textOf } from './xml.ts';

const MIB = 1024 ** 2;

/** The files of a machine in its host's pool, named by its ref. */
export const filesOf = (ref: OwnerRef): { disk: string; seed: string; console: string } => ({
  disk: `${ref}.qcow2`,
  seed: `${ref}.seed`,
  console: `${ref}.console`,
});

/** Whether the file was made for the machine. Includes rotated console logs. */
export const isFileOf = (ref: OwnerRef, name: string): boolean =>
  name.startsWith(`${ref}.`) && /^(qcow2|seed|console(\.\d+)?)$/.test(name.slice(ref.length + 1));

/** The pool's folder on the host. @throws {VirshError} */
export async function poolFolder({ virsh, options }: Host): Promise<string> {
  const pool = parseXml(await virsh(['pool-dumpxml', options.pool]));
  return textOf(descend(pool, 'target', 'path'));
}

/** Makes a disk of this size on top of the image's volume, or keeps that of an earlier call. @throws {VirshError} */
export async function makeOverlay(
  change: Change,
  host: Host,
  name: string,
  image: string,
  sizeGb: number,
): Promise<void> {
  const create = [
    ...['vol-create-as', host.options.pool, name, `${Math.ceil(sizeGb * 1024)}M`, '--format', 'qcow2'],
    ...['--backing-vol', image, '--backing-vol-format', 'qcow2'],
  ];
  if (await isMade(change, host, create)) return;
  const xml = parseXml(await host.virsh(['vol-dumpxml', '--pool', host.options.pool, '--', name]));
  const isWhole =
    textOf(descend(xml, 'capacity')) === String(Math.ceil(sizeGb * 1024) * MIB) &&
    basename(textOf(descend(xml, 'backingStore', 'path'))) === image;
  if (!isWhole) throw halfMade(host, name);
}

/** Writes a file; completes one that an earlier call made without content. @throws {VirshError} */
export async function writeFile(
  change: Change,
  host: Host,
  name: string,
  content: Uint8Array,
): Promise<void> {
  const { pool } = host.options;
  const size = `${content.length}B`;
  if (!(await isMade(change, host, ['vol-create-as', pool, name, size, '--format', 'raw']))) {
    const info = await host.virsh(['vol-info', '--bytes', '--pool', pool, '--', name]);
    if (capacityIn(info) !== content.length) throw halfMade(host, name);
  }
  await change.virsh(host, ['vol-upload', '--pool', pool, name, '/dev/stdin'], { input: content });
}

/** Runs a command that makes a file. Returns false if the file exists already. @throws {VirshError} */
function isMade(change: Change, host: Host, create: readonly string[]): Promise<boolean> {
  return change.virsh(host, create).then(() => true, onProblem('exists', false));
}

const halfMade = (host: Host, name: string): VirshError =>
  new VirshError('half_made', `${host.name} has ${name} of an earlier call, which is incomplete`);

const capacityIn = (info: string): number => Number(/^Capacity:\s+(\d+)/m.exec(info)?.[1] ?? 0);

/** Deletes a file. Succeeds also if the file does not exist. @throws {VirshError} */
export async function deleteFile(
  change: Change,
  host: Host,
  name: string,
  _order: DestroyOrder,
): Promise<void> {
  const deleting = change.virsh(host, ['vol-delete', '--pool', host.options.pool, '--', name]);
  await deleting.catch(onProblem('no_volume', ''));
}

/**
 * Names of all volumes, including files that libvirt did not create. With `change`, no earlier call can make one
 * afterwards. Libvirt cannot refresh while a file is being written; the last command decides the result.
 *
 * @throws {VirshError}
 */
export async function listFiles(host: Host, change?: Change): Promise<string[]> {
  const { pool } = host.options;
  const command = [`pool-refresh ${pool}; vol-list --pool ${pool}`];
  return namesIn(await (change === undefined ? host.virsh(command) : change.virsh(host, command)));
}

/** The volumes that libvirt knows, without a refresh of the folder. @throws {VirshError} */
export async function listKnownFiles({ virsh, options }: Host): Promise<string[]> {
  return namesIn(await virsh(['vol-list', '--pool', options.pool]));
}

const namesIn = (text: string): string[] =>
  text.split('\n').flatMap((line) => line.trim().split(/\s+/)[0] || []);

/**
 * Whether the machine's disk is lost: its path is in the pool, other files exist there, but this one does not. An
 * operator may have moved it to another pool.
 *
 * @throws {VirshError}
 */
export async function isDiskLost(host: Host, path: string | undefined): Promise<boolean> {
  if (path === undefined || dirname(path) !== (await poolFolder(host))) return false;
  const names = await listFiles(host);
  return names.length > 0 && !names.includes(basename(path));
}

/** The last bytes of a file. Undefined if it does not exist. @throws {VirshError} */
export async function readEnd(host: Host, name: string, bytes: number): Promise<string | undefined> {
  if (!(await listFiles(host)).includes(name)) return undefined;
  const { virsh, virshBytes, options } = host;
  const info = await virsh(['vol-info', '--bytes', '--pool', options.pool, '--', name]);
  const size = capacityIn(info);
  const from = Math.max(0, size - bytes);
  const range = ['--offset', String(from), '--length', String(size - from)];
  if (size === 0) return '';
  const content = await virshBytes(['vol-download', '--pool', options.pool, ...range, name, '/dev/stdout']);
  return content.toString('utf8');
}
