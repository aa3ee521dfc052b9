import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemErrorText } from '../text/wording.ts';
import { CommandError } from './program.ts';

/**
 * An output file. It is opened before anything is bought, so that a wrong path costs nothing. It is named
 * `<name>.partial` until it is complete. Writing never throws; see `problem`.
 */
export class OutputFile {
  readonly #option: string;
  readonly #path: string;
  readonly #partial: string | undefined;
  readonly #file: number;
  #problem: string | undefined;
  #isOpen = true;

  /** Throws `CommandError` if the file cannot be written. */
  constructor(option: string, path: string) {
    this.#option = option;
    this.#path = targetOf(option, path);
    const isReplaceable = kindOf(this.#path) !== 'special';
    this.#partial = isReplaceable ? `${this.#path}.partial` : undefined;
    try {
      this.#file = openSync(this.#partial ?? this.#path, 'w', 0o644);
    } catch (error) {
      throw new CommandError(
        `${option} ${path} cannot be written (${systemErrorText(error)}): name another file`,
      );
    }
  }

  get path(): string {
    return this.#path;
  }

  /** Why the file could not be written, as a sentence. Undefined if there was no problem. */
  get problem(): string | undefined {
    return this.#problem;
  }

  write(text: string): void {
    if (this.#problem !== undefined || !this.#isOpen) return;
    this.#try(() => {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    });
  }

  /** Completes the file and renames it to its final name. */
  finish(): void {
    if (!this.#isOpen) return;
    this.#try(() => {
      if (this.#partial !== undefined) fsyncSync(this.#file);
    });
    this.#close();
    const partial = this.#partial;
    if (partial !== undefined && this.#problem === undefined)
      this.#try(() => renameSync(partial, this.#path));
  }

  /** Writes and completes a file that is all of the result. Throws `CommandError`. */
  complete(text: string): void {
    this.write(text);
    this.finish();
    if (this.#problem !== undefined) throw new CommandError(this.#problem);
  }

  /** Removes the unfinished file. */
  discard(): void {
    if (!this.#isOpen) return;
    this.#close();
    if (this.#partial !== undefined) rmSync(this.#partial, { force: true });
  }

  #close(): void {
    this.#isOpen = false;
    this.#try(() => closeSync(this.#file));
  }

  #try(action: () => void): void {
    try {
      action();
    } catch (error) {
      const where = this.#partial === undefined ? '' : `; the incomplete file is ${this.#partial}`;
      this.#problem ??= `${this.#option} ${this.#path} could not be written (${systemErrorText(error)})${where}`;
    }
  }
}

/** Resolves links, so that a link is not replaced by the file. */
function targetOf(option: string, path: string): string {
  if (path === '' || path === '-') throw new CommandError(`${option} ${path} is not a file name: give one`);
  const absolute = resolve(path);
  try {
    const target = realpathSync(absolute);
    if (kindOf(target) === 'folder')
      throw new CommandError(`${option} ${path} is a folder: name a file in it`);
    return target;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    return inRealFolder(absolute);
  }
}

function inRealFolder(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

/** A special file (a pipe, /dev/null) is written in place. */
function kindOf(path: string): 'file' | 'folder' | 'special' | 'absent' {
  try {
    const stat = lstatSync(path);
    if (stat.isDirectory()) return 'folder';
    return stat.isFile() ? 'file' : 'special';
  } catch {
    return 'absent';
  }
}
