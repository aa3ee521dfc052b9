import { type Column, gt, lte, type SQL, sql } from 'drizzle-orm';
import type { PageEnd } from '../../../marketplace/model/ledger-records.ts';

/** A condition for the next page of a newest-first list. The first page also has a bound, so that an index is used. */
export function isAfter(time: Column, id: Column, { at, id: last }: PageEnd = NEWEST): SQL {
  return sql`(${time}, ${id}) < (${at}, ${last})`;
}

const NEWEST: PageEnd = { at: Number.MAX_SAFE_INTEGER, id: '' };

/** A condition for the next page of an oldest-first list. */
export function isLater(time: Column, id: Column, after: PageEnd | undefined): SQL | undefined {
  return after && sql`(${time}, ${id}) > (${after.at}, ${after.id})`;
}

/**
 * Reads due rows in the order of `time`, as two ranges of the index. One combined condition would scan all waiting
 * rows. Rows are never scheduled more than `farthestMs` ahead: a later one was scheduled with a wrong clock and counts as
 * due.
 */
export async function readDue<T>(
  time: Column,
  { now, limit, farthestMs }: { now: number; limit: number; farthestMs: number },
  read: (isDue: SQL, limit: number) => PromiseLike<T[]>,
): Promise<T[]> {
  const due = await read(lte(time, now), limit);
  if (due.length === limit) return due;
  return [...due, ...(await read(gt(time, now + farthestMs), limit - due.length))];
}
