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
 * How a file was left. `clean`: closed by Berth, and unchanged since. `crashed`: this very file was open when its
 * process or the machine ended. `unknown`: anything else, such as a copy, a restored file, or one that another program
 * wrote.
 */
export type LastClose = 'clean' | 'crashed' | 'unknown';

/**
 * Reads the mark next to a file. It identifies the file by inode and change time, which copies do not keep and programs
 * cannot set. So a copied mark, or one older than the file, is ignored. Call it before the file is opened.
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
 * Whether a crashed file was written after its journal: during a checkpoint, or by a copy over it in place, which keeps
 * the inode. In the second case, the journal's pages do not belong to this file.
 */
export function isOlderJournal(path: string): boolean {
  const real = realpathSync(path);
  const journal = statSync(`${real}-wal`, { bigint: true, throwIfNoEntry: false });
  return journal === undefined || journal.ctimeNs < statSync(real, { bigint: true }).ctimeNs;
}

/**
 * The mark of an open and undamaged file. It says that the file is open, and is on disk before anything is written to
 * the file.
 */
export class CloseMark {
  readonly #path: string;
  readonly #open: string;

  constructor(path: string) {
    this.#path = realpathSync(path);
    this.#open = toOpenMark(statSync(this.#path, { bigint: true }));
    write(this.#path, this.#open);
  }

  /** Call it when this process has no connection open any more. Another process may still have the file open. */
  closed(): void {
    const file = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (file !== undefined && toOpenMark(file) === this.#open && !hasJournal(this.#path))
      write(this.#path, toClosedMark(file));
  }
}

/** Without a mark the next start checks the file, so a failure to write one is ignored. */
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
