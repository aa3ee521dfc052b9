import { z } from '@hono/zod-openapi';

/** The headers of a create. */
export const createHeaders = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'expected 1 to 255 visible ASCII characters')
    .optional()
    .meta({ description: 'The same key with the same body gives the same resource for 24 hours.' }),
});

/** The header of a reply that repeats an earlier create. */
export const REPLAYED = 'Idempotent-Replayed';
