import type Database from 'better-sqlite3';

/** Asking takes microseconds. */
const EVERY_MS = 500;

/**
 * Tells soon after another process has committed to the file, such as a command of an operator. What SQLite answers changes
 * with the commits of other connections alone, and the rest of this process only reads.
 */
export class ForeignCommits {
  readonly #version: Database.Statement;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  readonly #listeners = new Set<() => void>();
  #known: unknown;

  constructor(writer: Database.Database, everyMs: number = EVERY_MS) {
    this.#version = writer.prepare('PRAGMA data_version').pluck();
    this.#known = this.#version.get();
    this.#everyMs = everyMs;
  }

  subscribe(listener: () => void): void {
    this.#listeners.add(listener);
    this.#timer ??= setInterval(() => this.#look(), this.#everyMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    let version: unknown;
    try {
      version = this.#version.get();
    } catch {
      // A file that does not answer is found by those who need it.
      return;
    }
    if (version === this.#known) return;
    this.#known = version;
    for (const listener of this.#listeners) listener();
  }
}
