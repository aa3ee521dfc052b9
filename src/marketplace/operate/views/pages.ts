import type { PageEnd } from '../../model/store.ts';

const AFTER = /^(\d{1,15})-([\w-]{1,100})$/;

/** Whether it is the `next` of a page. */
export function isAfter(text: string): boolean {
  return AFTER.test(text);
}

export function toPageEnd(text: string | undefined): PageEnd | undefined {
  const [, at, id] = AFTER.exec(text ?? '') ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** A page of rows of which one more than `limit` was read, and where the next one begins; null: this is the last one. */
export function cutPage<Row extends { id: string }>(
  found: readonly Row[],
  limit: number,
  timeOf: (row: Row) => number,
): { rows: Row[]; next: string | null } {
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last === undefined ? null : `${timeOf(last)}-${last.id}` };
}
