import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';

/** What every page of a list may have at most, and has where nothing else is asked for. */
export const MAX_PAGE = 500;
export const USUAL_PAGE = 50;

export const timeOrNullSchema = timestampSchema.nullable();

/** As the views have a time: RFC 3339, or null. */
export function toTime(ms: number): string;
export function toTime(ms: number | null): string | null;
export function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Where the next page of a list begins; null: this is the last one. */
export const nextSchema = z
  .string()
  .nullable()
  .meta({ description: 'Send it as `after` for the next page; null: this is the last one.' });

/** A page of rows of which one more than `limit` was read, and where the next one begins. */
export function cutPage<Row>(
  found: readonly Row[],
  limit: number,
  endOf: (last: Row) => string,
): { rows: Row[]; next: string | null } {
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last === undefined ? null : endOf(last) };
}
