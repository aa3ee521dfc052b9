import { z } from 'zod';
import { configurationSchema } from '../contract/configuration.ts';
import { restartStatusSchema } from '../contract/extensions.ts';
import { instanceSchema } from '../contract/instance.ts';
import { anyTimestampSchema, toOneLine } from '../contract/values.ts';
import { volumeLocationListSchema, volumeSchema } from '../contract/volume.ts';

/** Wider than src/contract, which describes Berth: any region token, `+00:00`, no GPU memory without GPUs. */
const regionSchema = z.string().min(1).max(255);
/** Ids are stored as text and used in paths and logs. */
const idSchema = z
  .string()
  .max(255)
  .regex(/^\P{Cc}+$/u, 'expected an id without control characters');

export const configurationAnswerSchema = configurationSchema.extend({
  regions: z.array(regionSchema),
  gpu_type: z.string().optional(),
  gpu_memory_gb: z.number().nonnegative().optional(),
});

export const instanceAnswerSchema = instanceSchema.extend({
  id: idSchema,
  region: regionSchema,
  error: z.string().optional(),
  created_at: anyTimestampSchema,
  updated_at: anyTimestampSchema,
});

export const volumeAnswerSchema = volumeSchema.extend({
  id: idSchema,
  region: regionSchema,
  created_at: anyTimestampSchema.optional(),
});

export const volumeLocationAnswerSchema = volumeLocationListSchema.shape.locations.element.extend({
  id: regionSchema,
  country_code: z.string().optional(),
});

export const restartStatusAnswerSchema = restartStatusSchema.extend({ since: anyTimestampSchema.optional() });

/** O: POST /auth/token. `token_type` may be missing. */
export const tokenAnswerSchema = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/, 'expected a token that fits into a header'),
  expires_in: z.number().positive(),
});

/** O: Errors: the codes are "not shown", so any text is accepted. Only Berth sets `details.reason`. */
export const errorAnswerSchema = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z.object({ reason: z.string() }).optional().catch(undefined),
  }),
});

const MAX_LENGTH = 200;

/** One line of at most 200 characters, without control characters and without `secrets`. */
export function toLine(text: string, secrets: readonly string[] = []): string {
  const safe = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[credential]'), text);
  return toOneLine(safe, MAX_LENGTH);
}
