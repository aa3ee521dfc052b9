import {
  type BigIntStats,
  existsSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { giveToOwnerOf, sync } from './database-file.ts';
import { refusalOf } from './errors.ts';

/**
 * How a file was left. `clean`: closed by us, and not touched since. `crashed`: this very file was open when its process
 * or the machine ended. `unknown`: anything else, such as a copy, a file put back, or one that another program wrote to.
 */
export type LastClose = 'clean' | 'crashed' | 'unknown';

/**
 * Reads the mark beside a file. It names the file by its inode and by the moment of its last change, which no copy keeps
 * and no program can set: a mark that was copied along, or is older than the file, says nothing. Call it before the
 * file is opened.
 */
export function readLastClose(path: string): LastClose {
  if (!existsSync(path)) return 'unknown';
  const real = realpathSync(path);
  const file = statSync(real, { bigint: true });
  const mark = readMark(real);
  if (mark !== toOpenMark(file) && !mark?.startsWith(`${toOpenMark(file)} closed `)) return 'unknown';
  if (hasJournal(real)) return 'crashed';
  return mark === toClosedMark(file) ? 'clean' : 'unknown';
}

/**
 * Whether the file of a crash was written after its journal: in the middle of a checkpoint, or by whoever copied another
 * one over it where it stood, which keeps the inode. The journal's pages are then not of this file.
 */
export function isOlderJournal(path: string): boolean {
  const real = realpathSync(path);
  const journal = statSync(`${real}-wal`, { bigint: true, throwIfNoEntry: false });
  return journal === undefined || journal.ctimeNs < statSync(real, { bigint: true }).ctimeNs;
}

/**
 * The mark of a file that is open and free of damage. While it is open the mark says so, and is on the disk before
 * anything is written to the file.
 */
export class CloseMark {
  readonly #path: string;
  readonly #open: string;

  constructor(path: string) {
    this.#path = realpathSync(path);
    this.#open = toOpenMark(statSync(this.#path, { bigint: true }));
    write(this.#path, this.#open);
  }

  /** Call it when no connection of this process is open any more. Another process may still have the file open. */
  closed(): void {
    const file = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (file !== undefined && toOpenMark(file) === this.#open && !hasJournal(this.#path))
      write(this.#path, toClosedMark(file));
  }
}

/** Without a mark the next start checks the file, so one that cannot be written is left out. */
function write(path: string, mark: string): void {
  const file = toMarkFile(path);
  try {
    writeFileSync(file, mark);
    giveToOwnerOf(path, file);
    sync(file);
    sync(dirname(path));
  } catch {
    rmSync(file, { force: true });
  }
}

function readMark(path: string): string | undefined {
  try {
    return existsSync(toMarkFile(path)) ? readFileSync(toMarkFile(path), 'utf8') : undefined;
  } catch (error) {
    throw refusalOf(error, path);
  }
}

function toMarkFile(path: string): string {
  return `${path}.state`;
}

/** SQLite removes its journals when the last connection is closed. */
function hasJournal(path: string): boolean {
  return existsSync(`${path}-wal`) || existsSync(`${path}-journal`);
}

function toOpenMark({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

function toClosedMark(file: BigIntStats): string {
  const { size, mtimeNs, ctimeNs } = file;
  return `${toOpenMark(file)} closed ${size} ${mtimeNs} ${ctimeNs}`;
}
