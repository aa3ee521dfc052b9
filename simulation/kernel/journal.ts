import { createHash, type Hash } from 'node:crypto';

/** How many lines are kept for a report; the hash covers all of them. */
const KEPT = 4_000;

/** Every event of a run, in order, as one line each. */
export class Journal {
  readonly #now: () => number;
  readonly #startAt: number;
  readonly #hash: Hash = createHash('sha256');
  readonly #lines: string[] = [];
  #unhashed = '';

  constructor(now: () => number) {
    this.#now = now;
    this.#startAt = now();
  }

  note(who: string, what: string): void {
    const line = `${((this.#now() - this.#startAt) / 1000).toFixed(3)} ${who} ${what}`;
    this.#unhashed += `${line}\n`;
    if (this.#unhashed.length > 16_384) this.#flush();
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines.splice(0, KEPT);
  }

  /** The last lines that name any of `words`; without words, the last of all. */
  last(count: number, words: readonly string[] = []): string[] {
    const fitting =
      words.length === 0
        ? this.#lines
        : this.#lines.filter((line) => words.some((word) => line.includes(word)));
    return fitting.slice(-count);
  }

  /** SHA-256 of all lines: equal for two runs with the same events. */
  digest(): string {
    this.#flush();
    return this.#hash.copy().digest('hex');
  }

  #flush(): void {
    this.#hash.update(this.#unhashed);
    this.#unhashed = '';
  }
}

/** The fields of a log line, as text for the journal. */
export function describeFields(fields: object): string {
  const parts = Object.entries(fields).map(([name, value]) => {
    const text = value instanceof Error ? `${value.name}: ${value.message}` : String(value);
    return `${name}=${text.slice(0, 120)}`;
  });
  return parts.join(' ');
}
