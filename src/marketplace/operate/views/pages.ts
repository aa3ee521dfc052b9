import type { PageEnd } from '../../model/store.ts';

const AFTER = /^(\d{1,15})-([\w-]{1,100})$/;

/** Whether the text has the form of a page's `next`. */
export function isAfter(text: string): boolean {
  return AFTER.test(text);
}

export function toPageEnd(text: string | undefined): PageEnd | undefined {
  const [, at, id] = AFTER.exec(text ?? '') ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** Formats a position for `toPageEnd`. */
export const fromPageEnd = ({ at, id }: PageEnd): string => `${at}-${id}`;
