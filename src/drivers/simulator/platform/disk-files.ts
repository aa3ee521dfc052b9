import { FileError, type Files, type StoredFile } from '../guest/guest.ts';
import { rootDisk, volumeDisk } from './records.ts';
import type { SimulatorState } from './state.ts';

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
