import type { MachineSpec } from '../../../orchestrator/model/platform-driver.ts';
import { FileError, type Files, GUEST_USER, type StoredFile } from '../guest/guest.ts';
import { rootDisk, type SimulatorState, volumeDisk } from './state.ts';

/** Size limit of a disk, whose files are rows in a database. */
const MAX_DISK_BYTES = 4 * 1024 * 1024;
const MAX_FILE_BYTES = 512 * 1024;
/** What a file takes of its disk besides its content. */
const BYTES_PER_FILE = 4096;
const MAX_PATH_CHARS = 4096;
const VOLUMES = '/mnt/';
const systemDirectories = ['dev', 'etc', 'home/ubuntu', 'mnt', 'root', 'run', 'srv', 'tmp', 'var/log'];

/**
 * A guest's files at absolute paths: its root disk, with each attached volume at /mnt/<volume ref>. A directory exists
 * while it contains a file. Owner and mode are stored, but every user may read and write every file.
 */
export class GuestFiles implements Files {
  readonly #state: SimulatorState;
  readonly #machine: string;
  readonly #attachedVolumes: () => readonly string[];

  constructor(state: SimulatorState, machine: string, attachedVolumes: () => readonly string[]) {
    this.#state = state;
    this.#machine = machine;
    this.#attachedVolumes = attachedVolumes;
  }

  find(path: string): StoredFile | undefined {
    const { disk, path: inner } = this.#locate(path);
    return this.#state.readFile(disk, inner);
  }

  read(path: string): StoredFile {
    const file = this.find(path);
    if (file === undefined)
      throw new FileError(this.list(path) === undefined ? 'No such file or directory' : 'Is a directory');
    return file;
  }

  write(path: string, file: StoredFile): void {
    if (this.list(path) !== undefined) throw new FileError('Is a directory');
    const { disk, path: inner } = this.#locate(path);
    const bytes = Buffer.byteLength(file.content);
    if (bytes > MAX_FILE_BYTES) throw new FileError('File too large');
    const before = this.#state.readFile(disk, inner);
    const freed = before === undefined ? 0 : Buffer.byteLength(before.content) + BYTES_PER_FILE;
    const used = this.#state.usedBytes(disk, BYTES_PER_FILE) - freed;
    if (used + bytes + BYTES_PER_FILE > MAX_DISK_BYTES) throw new FileError('No space left on device');
    this.#state.writeFile(disk, inner, file);
  }

  remove(path: string): void {
    this.read(path);
    const { disk, path: inner } = this.#locate(path);
    this.#state.deleteFile(disk, inner);
  }

  list(path: string): string[] | undefined {
    const prefix = path === '/' ? '/' : `${path}/`;
    const below = this.#paths().filter((one) => one.startsWith(prefix));
    if (below.length === 0) return undefined;
    const names = new Set(below.map((one) => one.slice(prefix.length).split('/', 1)[0] ?? ''));
    return [...names].filter((name) => name !== '').sort();
  }

  /** All files, and all directories that exist without one, with a final slash. */
  #paths(): string[] {
    return [
      ...systemDirectories.map((name) => `/${name}/`),
      ...this.#state.listPaths(rootDisk(this.#machine)),
      ...this.#attachedVolumes().flatMap((ref) =>
        ['/', ...this.#state.listPaths(volumeDisk(ref))].map((inner) => `${VOLUMES}${ref}${inner}`),
      ),
    ];
  }

  #locate(path: string): { disk: string; path: string } {
    if (path.length > MAX_PATH_CHARS) throw new FileError('File name too long');
    const [, volume = '', inner = ''] = /^\/mnt\/([^/]+)(\/.+)$/s.exec(path) ?? [];
    if (this.#attachedVolumes().includes(volume)) return { disk: volumeDisk(volume), path: inner };
    return { disk: rootDisk(this.#machine), path };
  }
}

const OUTPUT_LOG = '/var/log/cloud-init-output.log';
const rootFile = { mode: 0o644, user: 'root', group: 'root' };

export function writeFirstFiles({ hostname, image, sshKeys, cloudInit }: MachineSpec, files: Files): void {
  files.write('/etc/hostname', { ...rootFile, content: `${hostname}\n` });
  files.write('/etc/os-release', {
    ...rootFile,
    content: `PRETTY_NAME="${image}"\nVARIANT="Berth simulator"\n`,
  });
  files.write(`/home/${GUEST_USER}/.ssh/authorized_keys`, {
    content: sshKeys.map((line) => `${line}\n`).join(''),
    mode: 0o600,
    user: GUEST_USER,
    group: GUEST_USER,
  });
  for (const { path, content, permissions = '0644', owner = 'root' } of cloudInit?.write_files ?? []) {
    const [user = 'root', group = user] = owner.split(':');
    try {
      files.write(path, { content, mode: Number.parseInt(permissions, 8), user, group });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      logFirstBoot(files, `cc_write_files: ${path}: ${error.message}\n`);
    }
  }
}

/** Appends to cloud-init's log, if the disk has room. */
export function logFirstBoot(files: Files, text: string): void {
  try {
    files.write(OUTPUT_LOG, { ...rootFile, content: (files.find(OUTPUT_LOG)?.content ?? '') + text });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
  }
}
