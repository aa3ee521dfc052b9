import { and, eq, gt, inArray, lte, or, sql } from 'drizzle-orm';
import type { Store } from '../../../marketplace/model/store.ts';
import type { Db } from '../../queries/connection.ts';
import { requestCountTables } from '../../schema/marketplace.ts';
import { postgres } from '../../schema/postgres.ts';

/** Interval between deletions of expired windows, in milliseconds, and how many are deleted at once. */
const FORGET_EVERY_MS = 60_000;
const FORGET_AT_ONCE = 10_000;

const { requestCounts } = requestCountTables(postgres);

type Window = Parameters<Store['countRequest']>[0];

/** Request counts of all processes on one database. */
export class SharedRequestCounts {
  readonly #db: Db;
  #forgotAt = Number.NEGATIVE_INFINITY;

  constructor(db: Db) {
    this.#db = db;
  }

  async count({
    name,
    now,
    lengthMs,
    most = Number.MAX_SAFE_INTEGER,
  }: Window): Promise<{ count: number; endsAt: number }> {
    await this.#forget(now);
    const begun = { name, count: 1, endsAt: now + lengthMs };
    // The clocks of two processes differ by less than a window. A window that ends later was started by a wrong clock.
    const isOver = or(lte(requestCounts.endsAt, now), gt(requestCounts.endsAt, begun.endsAt + lengthMs));
    const [window] = await this.#db
      .insert(requestCounts)
      .values(begun)
      .onConflictDoUpdate({
        target: requestCounts.name,
        set: {
          count: sql`CASE WHEN ${isOver} THEN 1 ELSE ${requestCounts.count} + 1 END`,
          endsAt: sql`CASE WHEN ${isOver} THEN ${begun.endsAt} ELSE ${requestCounts.endsAt} END`,
        },
        setWhere: sql`${isOver} OR ${requestCounts.count} < ${most}`,
      })
      .returning({ count: requestCounts.count, endsAt: requestCounts.endsAt });
    if (window !== undefined) return window;
    const [full = begun] = await this.#db
      .select({ endsAt: requestCounts.endsAt })
      .from(requestCounts)
      .where(eq(requestCounts.name, name));
    return { count: most + 1, endsAt: full.endsAt };
  }

  async uncount({ name, endsAt }: Parameters<Store['uncountRequest']>[0]): Promise<void> {
    await this.#db
      .update(requestCounts)
      .set({ count: sql`${requestCounts.count} - 1` })
      .where(and(eq(requestCounts.name, name), eq(requestCounts.endsAt, endsAt)));
  }

  /** Skips windows that another process is counting in or deleting. */
  async #forget(now: number): Promise<void> {
    if (now - this.#forgotAt < FORGET_EVERY_MS) return;
    this.#forgotAt = now;
    const over = this.#db
      .select({ name: requestCounts.name })
      .from(requestCounts)
      .where(lte(requestCounts.endsAt, now))
      .limit(FORGET_AT_ONCE)
      .for('update', { skipLocked: true });
    await this.#db.delete(requestCounts).where(inArray(requestCounts.name, over));
  }
}
