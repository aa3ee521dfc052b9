import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { StoreUnavailable } from '../../ports/errors.ts';

/** Renames the draft unless a file of that name exists. Returns whether it did. */
export function putInPlace(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    // Some file systems have no hard links.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    if (existsSync(path)) return false;
    renameSync(draft, path);
    return true;
  }
}

/** Removes the draft and the files that SQLite may have left next to it. */
export function removeDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
}

/**
 * Gives a file that root created to the owner of `like`, a file or a folder: the server, which runs as another user,
 * must open it. Does nothing for other users.
 */
export function giveToOwnerOf(like: string, file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(like);
  if (uid !== statSync(file).uid) chownSync(file, uid, gid);
}

/** fsyncs a file, or a folder after a change of names in it. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Checks that an open database is still the file at its path. SQLite continues to write into a file or a journal that
 * was moved or deleted, and all of that would be lost when the process ends.
 */
export class FileIdentity {
  readonly #inodes: ReadonlyMap<string, bigint | undefined>;

  /** `path` must be open and have been read once, so that its journal exists. */
  constructor(path: string) {
    this.#inodes = new Map([path, `${path}-wal`].map((file) => [file, inodeOf(file)]));
  }

  /** @throws {StoreUnavailable} while a file is not at its path. */
  assertInPlace(): void {
    for (const [file, inode] of this.#inodes)
      if (inodeOf(file) !== inode)
        throw new StoreUnavailable(
          `the file ${file} was moved, deleted or replaced while it is in use: move it back, or stop the server, which saves what it has`,
        );
  }
}

function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}
