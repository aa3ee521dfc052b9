import { z } from 'zod';
import { wholeNumberSchema } from '../../contract/values.ts';

/** ISO 8601 UTC (M: "Timestamps are ISO 8601 UTC strings"). */
export const timestampSchema = z.iso.datetime().meta({ example: '2026-11-21T04:38:00.000Z' });

/** USD, with up to six decimals. */
export const usdSchema = z.number().meta({ description: 'USD.' });

/** USD per hour (M: "Prices are USD per hour"). */
export const usdPerHourSchema = z.number().meta({ description: 'USD per hour.' });

/** The id of a resource in a path or a body. */
export const idSchema = z.string().min(1).max(255);

export const instanceTypes = ['SPOT', 'DEDICATED', 'CLUSTER', 'BARE_METAL'] as const;
export type InstanceType = (typeof instanceTypes)[number];

/** M: `instanceType`, in any case. M: names `BARE_METAL` for a create body only; offer queries accept it too. */
export const requestedInstanceTypeSchema = z
  .string()
  .max(63)
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(['SPOT', 'DEDICATED', 'CLUSTER', 'BARE_METAL']))
  .meta({
    type: 'string',
    maxLength: 63,
    description: 'SPOT, DEDICATED, CLUSTER or BARE_METAL, in any case.',
    example: 'DEDICATED',
  });

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 100;

/** `page` and `limit` of a query. The use case applies the defaults. */
export const pageSchema = wholeNumberSchema(MAX_PAGE).meta({ description: 'Default 1.' });
export const limitSchema = wholeNumberSchema(MAX_LIMIT);

/** A boolean in a query: only `true` or `false`. */
export const flagSchema = z
  .enum(['true', 'false'], 'expected true or false')
  .transform((text) => text === 'true')
  .optional()
  .meta({ type: 'boolean' });

/** Formats milliseconds since the epoch as M: writes timestamps. */
export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}

export function toTimestampOrNull(ms: number | null): string | null {
  return ms === null ? null : toTimestamp(ms);
}
