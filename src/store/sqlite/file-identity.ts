import { statSync } from 'node:fs';
import { StoreUnavailable } from '../../ports/store-unavailable.ts';

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
