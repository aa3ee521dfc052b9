import { type Column, type SQL, sql } from 'drizzle-orm';
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
