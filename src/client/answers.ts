import { z } from 'zod';
import { configurationSchema } from '../contract/configuration.ts';
import { changesSchema, MAX_CHANGES, restartStatusSchema } from '../contract/extensions.ts';
import { instanceSchema } from '../contract/instance.ts';
import { toOneLine } from '../contract/values.ts';
import { volumeLocationListSchema, volumeSchema } from '../contract/volume.ts';

/**
 * What an orchestrator may answer. src/contract says how Berth words things, and that is narrower than O: in a few
 * places: any text is a region token, a timestamp in UTC may end in `+00:00`, and a machine without GPUs may say that
 * these have no memory.
 */
const regionSchema = z.string().min(1).max(255);
/** It is stored as text, and stands in paths and logs. */
const idSchema = z
  .string()
  .max(255)
  .regex(/^\P{Cc}+$/u, 'expected an id without control characters');
const timestampSchema = z.iso.datetime({ offset: true });

export const configurationAnswerSchema = configurationSchema.extend({
  regions: z.array(regionSchema),
  gpu_type: z.string().optional(),
  gpu_memory_gb: z.number().nonnegative().optional(),
});

export const instanceAnswerSchema = instanceSchema.extend({
  id: idSchema,
  region: regionSchema,
  error: z.string().optional(),
  created_at: timestampSchema,
  updated_at: timestampSchema,
});

export const volumeAnswerSchema = volumeSchema.extend({
  id: idSchema,
  region: regionSchema,
  created_at: timestampSchema.optional(),
});

export const volumeLocationAnswerSchema = volumeLocationListSchema.shape.locations.element.extend({
  id: regionSchema,
  country_code: z.string().optional(),
});

export const restartStatusAnswerSchema = restartStatusSchema.extend({ since: timestampSchema.optional() });

export const changesAnswerSchema = changesSchema.extend({
  // It is sent back in a URL.
  cursor: z.string().regex(/^[\x21-\x7e]{1,8192}$/, 'expected a cursor that fits into a URL'),
  changes: z.array(changesSchema.shape.changes.element.extend({ id: idSchema })).max(MAX_CHANGES),
});

/** O: POST /auth/token. `token_type` may be left out. */
export const tokenAnswerSchema = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/, 'expected a token that fits into a header'),
  expires_in: z.number().positive(),
});

/** O: Errors. Which codes there are is "not shown": any text is one. `details` are free: a `reason` in them is Berth's. */
export const errorAnswerSchema = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.object({ reason: z.string() }).optional().catch(undefined),
  }),
});

const MAX_LENGTH = 200;

/** A provider's text as one line of at most 200 characters, without control characters and without `secrets`. */
export function toLine(text: string, secrets: readonly string[] = []): string {
  const safe = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[credential]'), text);
  return toOneLine(safe, MAX_LENGTH);
}
