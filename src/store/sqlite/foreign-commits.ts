import type Database from 'better-sqlite3';

/** A check takes microseconds. */
const EVERY_MS = 500;

/**
 * Notifies listeners soon after another process has committed to the file, such as an operator's command.
 * `data_version` changes only with commits of other connections, and this process's other connection only reads.
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
      // The callers that need the file report that it does not answer.
      return;
    }
    if (version === this.#known) return;
    this.#known = version;
    for (const listener of this.#listeners) listener();
  }
}
