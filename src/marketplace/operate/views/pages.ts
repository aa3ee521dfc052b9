import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { PageEnd } from '../../model/ledger-records.ts';
import type { Store } from '../../model/store.ts';

/** Dependencies of most views. */
export interface ViewDeps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
}

/** The page of a list. */
export interface PageQuery {
  /** The `next` of the previous page. */
  after?: string | undefined;
  limit?: number | undefined;
}

const AFTER = /^(\d{1,15})-([\w-]{1,100})$/;

export function toPageEnd(text: string | undefined): PageEnd | undefined {
  const [, at, id] = AFTER.exec(text ?? '') ?? [];
  return at === undefined || id === undefined ? undefined : { at: Number(at), id };
}

/** Formats a position for `toPageEnd`. */
export const fromPageEnd = ({ at, id }: PageEnd): string => `${at}-${id}`;

export const afterSchema = z
  .string()
  .refine((text) => AFTER.test(text), 'expected the `next` of a page')
  .optional();
export const textSchema = z.string().max(200).optional();

/** @throws {ApiError} `not_found` */
export function known<T>(found: T | null, what: string): T {
  if (found === null) throw new ApiError('not_found', `There is no ${what}.`);
  return found;
}
