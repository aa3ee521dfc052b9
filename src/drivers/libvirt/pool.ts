import type { OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Host } from './client.ts';
import { VirshError } from './errors.ts';
import { descend, parseXml, textOf } from './xml.ts';

/** The files of a machine in its host's pool, by its ref. */
export const filesOf = (ref: OwnerRef): { disk: string; seed: string; console: string } => ({
  disk: `${ref}.qcow2`,
  seed: `${ref}.seed`,
  console: `${ref}.console`,
});

/** Files that were made for the machine, old ends of its console log too. */
const isFileOf = (ref: OwnerRef, name: string): boolean =>
  name.startsWith(`${ref}.`) && /^(qcow2|seed|console(\.\d+)?)$/.test(name.slice(ref.length + 1));

/** The folder of the pool on the host. @throws {VirshError} */
export async function poolFolder({ virsh, options }: Host): Promise<string> {
  const pool = parseXml(await virsh(['pool-dumpxml', options.pool]));
  return textOf(descend(pool, 'target', 'path'));
}

/** A new disk of that size on top of the image's volume, in place of one that an earlier attempt left. @throws {VirshError} */
export async function makeOverlay(host: Host, name: string, image: string, sizeGb: number): Promise<void> {
  const { virsh, options } = host;
  await deleteVolume(host, name);
  await virsh([
    ...['vol-create-as', options.pool, name, `${Math.ceil(sizeGb * 1024)}M`, '--format', 'qcow2'],
    ...['--backing-vol', image, '--backing-vol-format', 'qcow2'],
  ]);
}

/** A file with that content, in place of any that was there. @throws {VirshError} */
export async function writeFile(host: Host, name: string, content: Uint8Array): Promise<void> {
  const { virsh, options } = host;
  await deleteVolume(host, name);
  await virsh(['vol-create-as', options.pool, name, `${content.length}B`, '--format', 'raw']);
  await virsh(['vol-upload', '--pool', options.pool, name, '/dev/stdin'], { input: content });
}

/** Done too where there is none. @throws {VirshError} */
export async function deleteVolume({ virsh, options }: Host, name: string): Promise<void> {
  try {
    await virsh(['vol-delete', '--pool', options.pool, '--', name]);
  } catch (error) {
    if (!(error instanceof VirshError && error.problem === 'no_volume')) throw error;
  }
}

/** Names of all volumes, also of files that came by another way than libvirt. @throws {VirshError} */
async function listFiles({ virsh, options }: Host): Promise<string[]> {
  await virsh(['pool-refresh', options.pool]);
  const lines = (await virsh(['vol-list', '--pool', options.pool])).split('\n');
  return lines.flatMap((line) => line.trim().split(/\s+/)[0] || []);
}

/**
 * Whether the disk that the machine is defined with is lost: it belongs in the pool, other files are there, and it is not. An
 * operator may have moved it to another pool.
 *
 * @throws {VirshError}
 */
export async function isDiskLost(host: Host, ref: OwnerRef, path: string | undefined): Promise<boolean> {
  const { disk } = filesOf(ref);
  if (path !== `${await poolFolder(host)}/${disk}`) return false;
  const names = await listFiles(host);
  return names.length > 0 && !names.includes(disk);
}

/** Files of the pool that are called after the machine and that Berth did not make, such as a snapshot's. @throws {VirshError} */
export async function foreignFilesOf(host: Host, ref: OwnerRef): Promise<string[]> {
  return (await listFiles(host)).filter((name) => name.startsWith(`${ref}.`) && !isFileOf(ref, name));
}

/** Deletes what was made for the machine; what was left at the end. @throws {VirshError} */
export async function deleteFiles(host: Host, ref: OwnerRef): Promise<void> {
  const left = async (): Promise<string[]> => (await listFiles(host)).filter((name) => isFileOf(ref, name));
  for (const name of await left()) await deleteVolume(host, name);
  const [still] = await left();
  if (still !== undefined) throw new VirshError('busy', `${still} is still in the pool of ${host.name}`);
}

/** The last bytes of a file; undefined: it is not there. @throws {VirshError} */
export async function readEnd(host: Host, name: string, bytes: number): Promise<string | undefined> {
  if (!(await listFiles(host)).includes(name)) return undefined;
  const { virsh, virshBytes, options } = host;
  const info = await virsh(['vol-info', '--bytes', '--pool', options.pool, '--', name]);
  const size = Number(/^Capacity:\s+(\d+)/m.exec(info)?.[1] ?? 0);
  const from = Math.max(0, size - bytes);
  const range = ['--offset', String(from), '--length', String(size - from)];
  if (size === 0) return '';
  const content = await virshBytes(['vol-download', '--pool', options.pool, ...range, name, '/dev/stdout']);
  return content.toString('utf8');
}
