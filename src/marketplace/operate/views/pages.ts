import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import type { PageEnd } from '../../model/ledger-records.ts';

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

export const afterSchema = z.string().refine(isAfter, 'expected the `next` of a page').optional();
export const textSchema = z.string().max(200).optional();

/** @throws {ApiError} `not_found` */
export function known<T>(found: T | null, what: string): T {
  if (found === null) throw new ApiError('not_found', `There is no such ${what}.`);
  return found;
}
