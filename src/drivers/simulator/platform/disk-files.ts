import { posix } from 'node:path';
import { FileError, type FileFacts } from '../guest/guest.ts';
import { rootDisk, type StoredFile, volumeDisk } from './records.ts';
import type { SimulatorState } from './state.ts';

/** Size limit of a disk, whose files are rows in a database. */
const MAX_DISK_BYTES = 4 * 1024 * 1024;
const MAX_FILE_BYTES = 512 * 1024;
const MAX_FILES = 1_000;
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

/** A directory in memory, as on any Linux. */
const MEMORY = '/run/';

export interface Attributes {
  mode: number;
  user: string;
  group: string;
}

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

  stat(path: string): FileFacts | undefined {
    const { disk, path: inner } = this.#locate(path);
    const stored = this.#state.readFile(disk, inner);
    if (stored !== undefined) return factsOf(stored);
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
    return this.#contentOf(path);
  }

  /** Writes as `user`, who owns a new file. @throws {FileError} */
  write(path: string, content: string, { user, append }: { user: string; append: boolean }): void {
    const existing = this.stat(path);
    if (existing?.kind === 'directory') throw new FileError('Is a directory');
    if (existing === undefined) this.#mayCreate(path, user);
    else if (!mayAccess(existing, user, 2)) throw new FileError('Permission denied');
    const before = append ? this.#contentOf(path) : '';
    this.place(path, before + content, existing ?? { mode: 0o644, user, group: user });
  }

  /** Appends to a file; a new file gets exactly these attributes. @throws {FileError} */
  append(path: string, text: string, attributes: Attributes): void {
    this.place(path, this.#contentOf(path) + text, this.stat(path) ?? attributes);
  }

  /** Writes a file with exactly these attributes. Checks only for space. @throws {FileError} */
  place(path: string, content: string, attributes: Attributes): void {
    const { disk, path: inner } = this.#locate(path);
    const before = Buffer.byteLength(this.#state.readFile(disk, inner)?.content ?? '');
    const after = this.#state.usedBytes(disk) - before + Buffer.byteLength(content);
    if (after > MAX_DISK_BYTES) throw new FileError('No space left on device');
    if (Buffer.byteLength(content) > MAX_FILE_BYTES) throw new FileError('File too large');
    this.#mustHaveRoom(disk, inner);
    const { mode, user, group } = attributes;
    this.#state.writeFile(disk, inner, { kind: 'file', content, mode, user, group, modifiedAt: this.#now() });
  }

  forgetMemory(): void {
    const disk = rootDisk(this.#machine);
    for (const path of this.#state.listPaths(disk, MEMORY)) this.#state.deleteFile(disk, path);
  }

  /** @throws {FileError} */
  makeDirectory(path: string, user: string): void {
    if (this.stat(path) !== undefined) throw new FileError('File exists');
    this.#mayCreate(path, user);
    const { disk, path: inner } = this.#locate(path);
    this.#mustHaveRoom(disk, inner);
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

  /** The entries of a directory, sorted by name. @throws {FileError} */
  list(path: string): { name: string; file: FileFacts }[] {
    const file = this.stat(path);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind !== 'directory') throw new FileError('Not a directory');
    const { disk, path: inner } = this.#locate(path);
    const prefix = inner === '/' ? '/' : `${inner}/`;
    const below = this.#state.listPaths(disk, prefix);
    if (disk === rootDisk(this.#machine))
      below.push(...systemDirectories.filter((name) => name.startsWith(prefix)));
    if (path === '/mnt') below.push(...this.#attachedVolumes().map((volume) => `${VOLUMES}${volume}`));
    const names = new Set(below.map((name) => name.slice(prefix.length).split('/', 1)[0] ?? ''));
    names.delete('');
    return [...names].sort().flatMap((name) => {
      const entry = this.stat(`${path === '/' ? '' : path}/${name}`);
      return entry === undefined ? [] : [{ name, file: entry }];
    });
  }

  #contentOf(path: string): string {
    const { disk, path: inner } = this.#locate(path);
    return this.#state.readFile(disk, inner)?.content ?? '';
  }

  /** @throws {FileError} if the disk has its maximum number of files */
  #mustHaveRoom(disk: string, inner: string): void {
    if (this.#state.readFile(disk, inner) === undefined && this.#state.countFiles(disk) >= MAX_FILES)
      throw new FileError('No space left on device');
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
    return this.#state.listPaths(disk, `${inner}/`).length > 0;
  }

  #directory(path: string): FileFacts {
    const isHome = path === '/home/ubuntu' || path.startsWith(VOLUMES);
    const user = isHome ? 'ubuntu' : 'root';
    const mode = path === '/tmp' ? 0o1777 : path === '/root' ? 0o700 : 0o755;
    return { kind: 'directory', mode, user, group: user, sizeBytes: 0, modifiedAt: this.#now() };
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

function factsOf({ content, ...file }: StoredFile): FileFacts {
  return { ...file, sizeBytes: Buffer.byteLength(content) };
}

/** Checks the mode for one of read (4), write (2) and execute (1). Root always passes. */
function mayAccess(file: FileFacts, user: string, bit: number): boolean {
  if (user === 'root') return true;
  const shift = file.user === user ? 6 : file.group === user ? 3 : 0;
  return ((file.mode >> shift) & bit) !== 0;
}
