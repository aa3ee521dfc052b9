import { type Column, gt, lte, type SQL, sql } from 'drizzle-orm';
import type { PageEnd } from '../../../marketplace/model/store.ts';

/** Of a list from the newest on: what is on the page after this one. The first page has a bound too, so that an index has one. */
export function isAfter(time: Column, id: Column, { at, id: last }: PageEnd = NEWEST): SQL {
  return sql`(${time}, ${id}) < (${at}, ${last})`;
}

const NEWEST: PageEnd = { at: Number.MAX_SAFE_INTEGER, id: '' };

/** Of a list from the oldest on: what follows on the page before. */
export function isLater(time: Column, id: Column, after: PageEnd | undefined): SQL | undefined {
  return after && sql`(${time}, ${id}) > (${after.at}, ${after.id})`;
}

/**
 * No check and no posting is scheduled this far ahead, in milliseconds. A later one was scheduled while a clock was wrong
 * and is due.
 */
const FARTHEST_MS = 2 * 60 * 60 * 1000;

/** Reads what is due, in the order of `time`: two ranges of its index, which in one condition are a scan of all that waits. */
export async function readDue<T>(
  time: Column,
  { now, limit }: { now: number; limit: number },
  read: (isDue: SQL, limit: number) => PromiseLike<T[]>,
): Promise<T[]> {
  const due = await read(lte(time, now), limit);
  if (due.length === limit) return due;
  return [...due, ...(await read(gt(time, now + FARTHEST_MS), limit - due.length))];
}
