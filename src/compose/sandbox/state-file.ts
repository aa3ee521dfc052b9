import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { packageVersion } from '../../config/package-root.ts';
import { StateInUse, takeStateLock } from '../../drivers/simulator/platform/state-file.ts';
import { Fatal, InUse } from '../../ports/errors.ts';
import { clearTimeout, setTimeout } from '../../ports/timers.ts';
import type { SandboxUser } from '../../sandbox/sandbox.ts';
import type { SavedMoment } from '../../sandbox/state/snapshots.ts';

const MARK = 'berth sandbox';
const DIGEST_BYTES = 32;
/** Delay before a change is written, together with later ones. */
const WRITE_AFTER_MS = 1_000;

/** The parameters of a sandbox. A saved state can only be loaded with the same ones. */
export interface SandboxSetup {
  version: string;
  seed: string;
  providers: readonly string[];
  catalog: string | undefined;
  profile: string | undefined;
  marketplace: boolean;
  ssh: boolean;
}

interface SavedSandbox {
  mark: typeof MARK;
  setup: SandboxSetup;
  moment: SavedMoment;
  /** The user of the default account. */
  user: SandboxUser | undefined;
}

/** A file with the complete state of a sandbox. While it is open, no other process uses it. */
export class SandboxStateFile {
  readonly #file: string;
  readonly #setup: SandboxSetup;
  readonly #unlock: () => void;
  #save: (() => Promise<Pick<SavedSandbox, 'moment' | 'user'>>) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  /** Number of changes, and how many of them are in the file. */
  #changes = 0;
  #kept = 0;

  /** @throws {Fatal} */
  constructor(file: string, setup: Omit<SandboxSetup, 'version'>) {
    this.#file = file;
    this.#setup = { version: packageVersion(), ...setup };
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      this.#unlock = takeStateLock(file);
    } catch (error) {
      if (error instanceof StateInUse)
        throw new InUse(`Another process runs the sandbox of ${file}: give this one a file of its own.`);
      throw new Fatal(`The state ${file} cannot be used: ${(error as Error).message}.`, { cause: error });
    }
  }

  /** Reads the state of an earlier sandbox. Returns undefined if there is no file yet. @throws {Fatal} */
  read(): Pick<SavedSandbox, 'moment' | 'user'> | undefined {
    if (!existsSync(this.#file)) return undefined;
    const saved = readState(this.#file);
    const [ours, theirs] = [this.#setup, saved.setup];
    for (const name of Object.keys(ours) as (keyof SandboxSetup)[])
      if (String(ours[name]) !== String(theirs[name]))
        throw new Fatal(
          `The state ${this.#file} is of a sandbox with ${name} ${show(theirs[name])}, not ${show(ours[name])}: start it with that, or give another file.`,
        );
    return saved;
  }

  /** Writes changes from now on. */
  keep(save: () => Promise<Pick<SavedSandbox, 'moment' | 'user'>>): void {
    this.#save = save;
  }

  /** Records a change. It is written soon, even without {@link isKept}. */
  changed(): void {
    this.written();
    this.#timer ??= setTimeout(() => void this.#write().catch(() => this.changed()), WRITE_AFTER_MS).unref();
  }

  /** Records a write of a server. It must not be reported before {@link isKept}. */
  written(): void {
    this.#changes++;
  }

  /** Resolves when all changes so far are in the file, and survive a `kill -9`. */
  async isKept(): Promise<void> {
    if (this.#kept < this.#changes) await this.#write();
  }

  /** Writes the current state, and releases the file. */
  async close(): Promise<void> {
    try {
      await this.#write();
    } finally {
      clearTimeout(this.#timer);
      this.#unlock();
    }
  }

  /** A write that has not started yet includes this change. */
  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#next ??= this.#lastWrite.then(() => {
      this.#next = undefined;
      const writing = this.#writeNow();
      this.#lastWrite = writing.catch(() => undefined);
      return writing;
    });
    return this.#next;
  }

  /** Writes atomically: if the process ends, the file is the old one or the new one. */
  async #writeNow(): Promise<void> {
    if (this.#save === undefined) return;
    const changes = this.#changes;
    const saved: SavedSandbox = { mark: MARK, setup: this.#setup, ...(await this.#save()) };
    const draft = `${this.#file}.draft`;
    const bytes = serialize(saved);
    writeFileSync(draft, Buffer.concat([digestOf(bytes), bytes]), { mode: 0o600 });
    renameSync(draft, this.#file);
    this.#kept = changes;
  }
}

function readState(file: string): SavedSandbox {
  const damaged = `${file} is not a state file of a sandbox, or is damaged: move it away to start with an empty one`;
  try {
    const whole = readFileSync(file);
    const bytes = whole.subarray(DIGEST_BYTES);
    if (digestOf(bytes).equals(whole.subarray(0, DIGEST_BYTES))) {
      const saved = deserialize(bytes) as SavedSandbox;
      if (saved.mark === MARK) return saved;
    }
  } catch (error) {
    throw new Fatal(`${damaged} (${(error as Error).message}).`, { cause: error });
  }
  throw new Fatal(`${damaged}.`);
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function show(setting: unknown): string {
  return Array.isArray(setting) ? setting.join(',') : String(setting ?? 'none');
}
