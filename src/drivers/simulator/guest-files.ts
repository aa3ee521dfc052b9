import { posix } from 'node:path';
import type { SimulatorState, StoredFile } from './state.ts';

/** What one disk keeps at most. A real disk is larger; this one is a row in a database. */
const MAX_DISK_BYTES = 4 * 1024 * 1024;
const MAX_PATH_CHARS = 4096;
const VOLUMES = '/mnt/';
/** Directories that every image has. */
const systemDirectories = [
  '/',
  '/dev',
  '/etc',
  '/home',
  '/home/ubuntu',
  '/mnt',
  '/opt',
  '/proc',
  '/root',
  '/run',
  '/srv',
  '/tmp',
  '/usr',
  '/var',
  '/var/log',
];

/** What is below is in memory, as on any Linux. */
const MEMORY = '/run/';

/** A failed file operation, in the words of strerror(3). */
export class FileError extends Error {
  override readonly name = 'FileError';
}

export interface Attributes {
  mode: number;
  user: string;
  group: string;
}

/** The name under which a machine's root disk, or a volume, is stored. */
export const rootDisk = (machine: string): string => `machine/${machine}`;
export const volumeDisk = (volume: string): string => `volume/${volume}`;

/** A guest's file tree: its root disk, with each attached volume at /mnt/<volume ref>. */
export class GuestFiles {
  readonly #state: SimulatorState;
  readonly #machine: string;
  readonly #attachedVolumes: () => readonly string[];
  readonly #now: () => number;

  constructor(
    state: SimulatorState,
    machine: string,
    attachedVolumes: () => readonly string[],
    now: () => number,
  ) {
    this.#state = state;
    this.#machine = machine;
    this.#attachedVolumes = attachedVolumes;
    this.#now = now;
  }

  /** What is at the absolute path; undefined: nothing. */
  stat(path: string): StoredFile | undefined {
    const { disk, path: inner } = this.#locate(path);
    const stored = this.#state.readFile(disk, inner);
    if (stored !== undefined) return stored;
    const isDirectory =
      inner === '/' ||
      (disk === rootDisk(this.#machine) && systemDirectories.includes(inner)) ||
      this.#hasChildren(disk, inner);
    return isDirectory ? this.#directory(path) : undefined;
  }

  /** @throws {FileError} */
  read(path: string, user: string): string {
    const file = this.stat(path);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind === 'directory') throw new FileError('Is a directory');
    if (!mayAccess(file, user, 4)) throw new FileError('Permission denied');
    return file.content;
  }

  /** Writes as `user`; a new file belongs to it. @throws {FileError} */
  write(path: string, content: string, user: string): void {
    const existing = this.stat(path);
    if (existing?.kind === 'directory') throw new FileError('Is a directory');
    if (existing === undefined) this.#mayCreate(path, user);
    else if (!mayAccess(existing, user, 2)) throw new FileError('Permission denied');
    this.place(path, content, existing ?? { mode: 0o644, user, group: user });
  }

  /** Writes with exactly these attributes, making no check but for space. @throws {FileError} */
  place(path: string, content: string, attributes: Attributes): void {
    const { disk, path: inner } = this.#locate(path);
    const before = Buffer.byteLength(this.#state.readFile(disk, inner)?.content ?? '');
    const after = this.#state.usedBytes(disk) - before + Buffer.byteLength(content);
    if (after > MAX_DISK_BYTES) throw new FileError('No space left on device');
    const { mode, user, group } = attributes;
    this.#state.writeFile(disk, inner, { kind: 'file', content, mode, user, group, modifiedAt: this.#now() });
  }

  /** What is in memory is gone. */
  forgetMemory(): void {
    const disk = rootDisk(this.#machine);
    for (const { path } of this.#state.listFiles(disk, MEMORY)) this.#state.deleteFile(disk, path);
  }

  /** @throws {FileError} */
  makeDirectory(path: string, user: string): void {
    if (this.stat(path) !== undefined) throw new FileError('File exists');
    this.#mayCreate(path, user);
    const { disk, path: inner } = this.#locate(path);
    const directory = {
      kind: 'directory',
      content: '',
      mode: 0o755,
      user,
      group: user,
      modifiedAt: this.#now(),
    } as const;
    this.#state.writeFile(disk, inner, directory);
  }

  /** @throws {FileError} */
  remove(path: string, user: string): void {
    const file = this.stat(path);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind === 'directory') throw new FileError('Is a directory');
    if (!this.#mayWriteIn(posix.dirname(path), user)) throw new FileError('Permission denied');
    const { disk, path: inner } = this.#locate(path);
    this.#state.deleteFile(disk, inner);
  }

  /** The names in a directory, in order. @throws {FileError} */
  list(path: string): string[] {
    const file = this.stat(path);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind !== 'directory') throw new FileError('Not a directory');
    const { disk, path: inner } = this.#locate(path);
    const prefix = inner === '/' ? '/' : `${inner}/`;
    const below = this.#state.listFiles(disk, prefix).map((entry) => entry.path);
    if (disk === rootDisk(this.#machine))
      below.push(...systemDirectories.filter((name) => name.startsWith(prefix)));
    if (path === '/mnt') below.push(...this.#attachedVolumes().map((volume) => `${VOLUMES}${volume}`));
    const names = below.map((name) => name.slice(prefix.length).split('/', 1)[0] ?? '');
    return [...new Set(names)].filter((name) => name !== '').sort();
  }

  #locate(path: string): { disk: string; path: string } {
    if (path.length > MAX_PATH_CHARS) throw new FileError('File name too long');
    if (path.startsWith(VOLUMES)) {
      const [volume = '', ...rest] = path.slice(VOLUMES.length).split('/');
      if (this.#attachedVolumes().includes(volume))
        return { disk: volumeDisk(volume), path: `/${rest.join('/')}` };
    }
    return { disk: rootDisk(this.#machine), path };
  }

  #hasChildren(disk: string, inner: string): boolean {
    return this.#state.listFiles(disk, `${inner}/`).length > 0;
  }

  #directory(path: string): StoredFile {
    const isHome = path === '/home/ubuntu' || path.startsWith(VOLUMES);
    const user = isHome ? 'ubuntu' : 'root';
    const mode = path === '/tmp' ? 0o1777 : path === '/root' ? 0o700 : 0o755;
    return { kind: 'directory', content: '', mode, user, group: user, modifiedAt: this.#now() };
  }

  #mayCreate(path: string, user: string): void {
    const parent = posix.dirname(path);
    const directory = this.stat(parent);
    if (directory === undefined) throw new FileError('No such file or directory');
    if (directory.kind !== 'directory') throw new FileError('Not a directory');
    if (!this.#mayWriteIn(parent, user)) throw new FileError('Permission denied');
  }

  #mayWriteIn(directory: string, user: string): boolean {
    const file = this.stat(directory);
    return file !== undefined && mayAccess(file, user, 2);
  }
}

/** The mode's check for one of read (4), write (2) and execute (1). Root passes. */
function mayAccess(file: StoredFile, user: string, bit: number): boolean {
  if (user === 'root') return true;
  const shift = file.user === user ? 6 : file.group === user ? 3 : 0;
  return ((file.mode >> shift) & bit) !== 0;
}
