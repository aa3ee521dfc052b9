import nodeFs from 'node:fs';
import { dirname, join } from 'node:path';
import { systemErrorText } from '../text/wording.ts';
import { LogUnavailable } from './log-reader.ts';

/** The calls by which a log is written. */
export type FileSystem = Pick<
  typeof nodeFs,
  | 'closeSync'
  | 'existsSync'
  | 'fsyncSync'
  | 'linkSync'
  | 'mkdirSync'
  | 'openSync'
  | 'readFileSync'
  | 'renameSync'
  | 'rmSync'
  | 'writeSync'
>;

/**
 * Writes the files of a log so that a crash at any moment leaves whole files only, in the order in which they were
 * written. All of it throws `LogUnavailable` if the disk refuses.
 */
export class LogDisk {
  readonly folder: string;
  readonly #fs: FileSystem;
  readonly #unfinished: string;

  /** `unfinished` names the file that is written before it gets its name: only one process may write it at a time. */
  constructor(folder: string, { fs = nodeFs as FileSystem, unfinished = '.unfinished' } = {}) {
    this.folder = folder;
    this.#fs = fs;
    this.#unfinished = join(folder, unfinished);
  }

  /** Makes the folder of the log, if there is none. */
  makeFolder(): void {
    this.#try(this.folder, () => this.#makeFolder(this.folder));
  }

  /** Writes a file that never changes. A file that is there must have this content: it is never replaced. */
  create(path: string, bytes: Buffer): void {
    const whole = join(this.folder, path);
    this.#try(whole, () => {
      if (this.#fs.existsSync(whole)) return this.#demand(whole, bytes);
      this.#makeFolder(dirname(whole));
      const unfinished = this.#writeUnfinished(bytes);
      this.#fs.linkSync(unfinished, whole);
      this.#fs.rmSync(unfinished);
      this.#syncFolder(dirname(whole));
    });
  }

  /** Writes a file that takes the place of an earlier one. */
  replace(path: string, bytes: Buffer): void {
    const whole = join(this.folder, path);
    this.#try(whole, () => {
      this.#fs.renameSync(this.#writeUnfinished(bytes), whole);
      this.#syncFolder(dirname(whole));
    });
  }

  /** Removes a folder, if it is there. */
  removeFolder(path: string): void {
    const whole = join(this.folder, path);
    this.#try(whole, () => this.#fs.rmSync(whole, { recursive: true, force: true }));
  }

  #demand(path: string, bytes: Buffer): void {
    if (!this.#fs.readFileSync(path).equals(bytes))
      throw new LogUnavailable(
        `${path} has other content than the log's entries give: a published file is never replaced, so restore it`,
      );
  }

  /** An earlier one is removed, and not written to: a crash can leave it with a second name. */
  #writeUnfinished(bytes: Buffer): string {
    const path = this.#unfinished;
    this.#fs.rmSync(path, { force: true });
    const file = this.#fs.openSync(path, 'wx', 0o644);
    try {
      for (let at = 0; at < bytes.length; ) at += this.#fs.writeSync(file, bytes, at);
      this.#fs.fsyncSync(file);
    } finally {
      this.#fs.closeSync(file);
    }
    return path;
  }

  #makeFolder(folder: string): void {
    if (this.#fs.existsSync(folder)) return;
    const parent = dirname(folder);
    if (parent !== folder) this.#makeFolder(parent);
    this.#fs.mkdirSync(folder);
    this.#syncFolder(parent);
  }

  /** A new name survives a crash only after its folder is synced. */
  #syncFolder(folder: string): void {
    const handle = this.#fs.openSync(folder, 'r');
    this.#fs.fsyncSync(handle);
    this.#fs.closeSync(handle);
  }

  #try(path: string, action: () => void): void {
    try {
      action();
    } catch (error) {
      if (error instanceof LogUnavailable) throw error;
      throw new LogUnavailable(`${path} could not be written (${systemErrorText(error)})`);
    }
  }
}
