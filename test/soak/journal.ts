/** Something that must not happen, with what is needed to find out why. */
export interface Loss {
  at: string;
  what: string;
  details: object;
}

/** What happened in a run: counts for the summary, the losses, and the story. */
export class Journal {
  readonly startedAt = Date.now();
  readonly operations = new Map<string, number>();
  readonly replies = new Map<string, number>();
  readonly faults = new Map<string, number>();
  readonly losses: Loss[] = [];
  /** From the last fault until all books agreed. */
  quietAfterMs: number | null = null;
  readonly #print: (line: string) => void;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  operation(kind: string, count = 1): void {
    add(this.operations, kind, count);
  }

  /** `status` is `lost` where there was no reply. */
  reply(kind: string, status: number | 'lost'): void {
    add(this.replies, `${kind} ${status}`);
  }

  fault(kind: string, count = 1): void {
    add(this.faults, kind, count);
  }

  say(text: string): void {
    this.#print(`${((Date.now() - this.startedAt) / 1000).toFixed(1).padStart(7)} s  ${text}`);
  }

  lose(what: string, details: object = {}): void {
    this.losses.push({ at: new Date().toISOString(), what, details });
    this.say(`LOST: ${what} ${JSON.stringify(details)}`);
  }
}

function add(counts: Map<string, number>, key: string, count = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

export function sortedCounts(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([a], [b]) => a.localeCompare(b)));
}
