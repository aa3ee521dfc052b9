import { existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { giveToOwnerOf, sync } from './database-file.ts';

/**
 * How a file was left, as the mark next to it says. `open`: a process has it open, or ended without closing it.
 * `unknown`: there is no readable mark.
 */
export type LastClose = 'closed' | 'open' | 'unknown';

/** Reads the mark next to a file. Call it before the file is opened. */
export function readLastClose(path: string): LastClose {
  if (!existsSync(path)) return 'unknown';
  const real = realpathSync(path);
  const mark = readMark(real);
  if (mark === 'open') return mark;
  if (mark !== 'closed') return 'unknown';
  return hasJournal(real) ? 'open' : mark;
}

/** The mark of an undamaged file. It says that the file is open before anything is written to the file. */
export class CloseMark {
  readonly #path: string;

  constructor(path: string) {
    this.#path = realpathSync(path);
    write(this.#path, 'open');
  }

  /** Call it when this process has no connection open any more. Another process may still have the file open. */
  closed(): void {
    if (existsSync(this.#path) && !hasJournal(this.#path)) write(this.#path, 'closed');
  }
}

/** Without a readable mark the next start checks the file, so a failure to write one is ignored. */
function write(path: string, mark: LastClose): void {
  const file = toMarkFile(path);
  try {
    writeFileSync(file, mark);
    giveToOwnerOf(path, file);
    sync(file);
    sync(dirname(path));
  } catch {
    if (readMark(path) !== undefined) rmSync(file, { force: true });
  }
}

function readMark(path: string): string | undefined {
  try {
    return readFileSync(toMarkFile(path), 'utf8');
  } catch {
    return undefined;
  }
}

function toMarkFile(path: string): string {
  return `${path}.state`;
}

/** SQLite removes its journals when the last connection is closed. */
function hasJournal(path: string): boolean {
  return existsSync(`${path}-wal`) || existsSync(`${path}-journal`);
}
