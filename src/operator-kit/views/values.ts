import { z } from 'zod';
import { timestampSchema, wholeNumberSchema } from '../../contract/values.ts';

/** Maximum and default size of a page. */
export const MAX_PAGE = 500;
export const USUAL_PAGE = 50;

export const limitSchema = wholeNumberSchema(MAX_PAGE);

export const timeOrNullSchema = timestampSchema.nullable();

/** Formats a time for the views: RFC 3339, or null. */
export function toTime(ms: number): string;
export function toTime(ms: number | null): string | null;
export function toTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** The cursor of the next page. Null on the last page. */
export const nextSchema = z
  .string()
  .nullable()
  .meta({ description: 'Send it as `after` for the next page; null: this is the last one.' });

/** Cuts a page from rows that were read with one more than `limit`, and returns the cursor of the next page. */
export function cutPage<Row>(
  found: readonly Row[],
  limit: number,
  endOf: (last: Row) => string,
): { rows: Row[]; next: string | null } {
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last === undefined ? null : endOf(last) };
}

const STEPS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/** Formats a duration in its largest unit: `12 min`. */
export function span(ms: number): string {
  const [size, unit] = STEPS.find(([step]) => Math.abs(ms) >= step) ?? [1_000, 's'];
  return `${Math.round(Math.abs(ms) / size)} ${unit}`;
}

/** Formats how long a call took: `340 ms`, `2.4 s`, `3 min`. */
export function took(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms);
}

/** Formats a whole number as `1,234`. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}
