import type { Clock } from '../ports/clock.ts';
import type { Actor, AuditWriter } from './model.ts';

/** Minimum time between two rows of one address. */
const FOLD_MS = 60_000;
/** Number of addresses with their own row. Further addresses share a row. */
const MAX_ADDRESSES = 20;
/** A burst of rows, then one every six minutes: a year of attacks adds about 90,000 rows. */
const BURST_ROWS = 60;
const ROW_EVERY_MS = 6 * 60_000;

const UNKNOWN = '(unknown)';
const OTHERS = '(others)';

interface Folded {
  actor: Actor;
  count: number;
  since: number;
  dueAt: number;
}

/**
 * Collects refused operator keys for the audit log: one row for each address and minute, with a count. The number of
 * rows is limited. Refusals beyond the limit are counted in the next row.
 */
export class RefusedSignIns {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #folded = new Map<string, Folded>();
  /** When the full burst of rows is available again. */
  #fullAt = 0;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /**
   * Counts a refused key. `name` is given if the key was revoked. Returns whether it is the first of its address for a
   * while.
   */
  count({ source, address }: Pick<Actor, 'source' | 'address'>, name = UNKNOWN): boolean {
    const now = this.#clock.now();
    const exact = JSON.stringify([source, address, name]);
    const isShared = !this.#folded.has(exact) && this.#folded.size >= MAX_ADDRESSES;
    const key = isShared ? source : exact;
    const actor = isShared ? { name: UNKNOWN, source, address: OTHERS } : { name, source, address };
    const known = this.#folded.get(key) ?? { actor, count: 0, since: now, dueAt: now };
    if (known.count === 0) known.since = now;
    known.count++;
    this.#folded.set(key, known);
    return known.count === 1 && known.dueAt <= now;
  }

  /**
   * Writes the rows that are due and allowed. The others are kept for the next call. The last call, at shutdown, writes
   * all rows: one for each known address.
   */
  async write<Tx extends { audit: Pick<AuditWriter, 'add'> }>(
    transact: (body: (tx: Tx) => Promise<void>) => Promise<void>,
    isLast = false,
  ): Promise<void> {
    const now = this.#clock.now();
    for (const [key, one] of this.#folded) if (one.count === 0 && one.dueAt <= now) this.#folded.delete(key);
    const due = [...this.#folded.values()].filter(
      ({ count, dueAt }) => count > 0 && (isLast || dueAt <= now),
    );
    const written = due
      .slice(0, isLast ? due.length : this.#allowed(now))
      .map((one) => ({ one, count: one.count }));
    if (written.length === 0) return;
    await transact(async ({ audit }) => {
      for (const { one, count } of written)
        await audit.add({
          at: now,
          actor: one.actor.name,
          source: one.actor.source,
          address: one.actor.address,
          action: 'operator.login',
          subject: null,
          detail: { count, since: new Date(one.since).toISOString() },
          outcome: 'refused',
        });
    });
    this.#fullAt = Math.max(now, this.#fullAt) + written.length * ROW_EVERY_MS;
    for (const { one, count } of written) {
      one.count -= count;
      one.since = now;
      one.dueAt = now + FOLD_MS;
    }
  }

  #allowed(now: number): number {
    return BURST_ROWS - Math.ceil(Math.max(0, this.#fullAt - now) / ROW_EVERY_MS);
  }
}
