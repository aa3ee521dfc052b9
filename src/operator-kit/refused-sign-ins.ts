import type { Clock } from '../ports/clock.ts';
import type { Actor, AuditWriter } from './model.ts';

/** Minimum time between two rows about one name: a year of attacks adds about 50,000 rows. */
const FOLD_MS = 10 * 60_000;
/** Number of addresses that a row names. */
const MAX_ADDRESSES = 20;
const UNKNOWN = '(unknown)';
const SEVERAL = '(several)';

interface Refused {
  from: Pick<Actor, 'source' | 'address'>;
  addresses: Set<string | null>;
  count: number;
  since: number;
  dueAt: number;
}

/**
 * Collects refused operator keys for the audit log: one row every ten minutes for unknown keys, and one for each operator
 * whose key was revoked, with a count.
 */
export class RefusedSignIns {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #byName = new Map<string, Refused>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Counts a refused key. `name` is given if the key was revoked. Returns whether it is the first for a while. */
  count(from: Refused['from'], name = UNKNOWN): boolean {
    const now = this.#clock.now();
    const known = this.#byName.get(name);
    const dueAt = known?.dueAt ?? now;
    const refused: Refused =
      known !== undefined && known.count > 0
        ? known
        : { from, addresses: new Set(), count: 0, since: now, dueAt };
    this.#byName.set(name, refused);
    if (refused.addresses.size < MAX_ADDRESSES) refused.addresses.add(from.address);
    return ++refused.count === 1 && refused.dueAt <= now;
  }

  /** Writes the rows that are due. The last call, at shutdown, writes all. On failure they are kept for the next call. */
  async write<Tx extends { audit: Pick<AuditWriter, 'add'> }>(
    transact: (body: (tx: Tx) => Promise<void>) => Promise<void>,
    isLast = false,
  ): Promise<void> {
    const now = this.#clock.now();
    const due = [...this.#byName]
      .filter(([, { count, dueAt }]) => count > 0 && (isLast || dueAt <= now))
      .map(([name, refused]) => ({ name, refused, count: refused.count }));
    if (due.length === 0) return;
    await transact(async ({ audit }) => {
      for (const { name, refused, count } of due)
        await audit.add({
          at: now,
          actor: name,
          source: refused.from.source,
          address: refused.addresses.size > 1 ? SEVERAL : refused.from.address,
          action: 'operator.login',
          subject: null,
          detail: { count, since: new Date(refused.since).toISOString(), addresses: [...refused.addresses] },
          outcome: 'refused',
        });
    });
    for (const { refused, count } of due) {
      refused.count -= count;
      refused.since = now;
      refused.dueAt = now + FOLD_MS;
    }
  }
}
