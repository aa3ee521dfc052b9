import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Created } from '../accounts/create-once.ts';
import type { HttpEnv } from './deps.ts';

/** The headers of a create. */
export const createHeaders = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'expected 1 to 255 visible ASCII characters')
    .optional()
    .meta({ description: 'The same key with the same body gives the same resource for 24 hours.' }),
});

/** The record of a create, told as a replay where it is one. */
export function markReplay<Record>(context: Context<HttpEnv>, { record, isReplay }: Created<Record>): Record {
  if (isReplay) context.header('Idempotent-Replayed', 'true');
  return record;
}
