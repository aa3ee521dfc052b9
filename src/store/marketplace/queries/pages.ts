import { type Column, type SQL, sql } from 'drizzle-orm';
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
