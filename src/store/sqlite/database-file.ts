import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { StoreUnavailable } from '../../ports/store-unavailable.ts';

/** Gives the draft its name unless there is a file of that name; whether it did. */
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

/** With what SQLite may have left beside it. */
export function removeDraft(draft: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${draft}${suffix}`, { force: true });
}

/** Makes what was written to a file durable, or the names in a folder. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * That an open database is still the file of its name. SQLite writes on into a file that was moved or deleted, and
 * into a journal that was, and all of it would be gone with the process.
 */
export class FileIdentity {
  readonly #inodes: ReadonlyMap<string, bigint | undefined>;

  /** `path` is open, and has been read: so its journal is there. */
  constructor(path: string) {
    this.#inodes = new Map([path, `${path}-wal`].map((file) => [file, inodeOf(file)]));
  }

  /** @throws {StoreUnavailable} until each file is where it was. */
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
