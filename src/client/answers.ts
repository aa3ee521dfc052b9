import { z } from 'zod';
import { configurationSchema } from '../contract/configuration.ts';
import { berthExtrasSchema, restartStatusSchema, volumeUsageSchema } from '../contract/extensions.ts';
import { instanceSchema } from '../contract/instance.ts';
import { nullAsAbsent } from '../contract/nulls.ts';
import { anyTimestampSchema, toOneLine } from '../contract/values.ts';
import { volumeLocationListSchema, volumeSchema } from '../contract/volume.ts';
import { EXPECTED_PLAIN_TEXT, isPlainText, pathsOfUnplainText } from '../ports/plain-text.ts';
import type { Identified } from './orchestrator-client.ts';

/** Wider than src/contract, which describes Berth: any region token, `+00:00`, no GPU memory without GPUs. */
const regionSchema = z.string().min(1).max(255).refine(isPlainText, EXPECTED_PLAIN_TEXT);

const configuration = configurationSchema.extend({
  regions: z.array(regionSchema),
  gpu_type: z.string().optional(),
  gpu_memory_gb: z.number().nonnegative().optional(),
});

const instance = instanceSchema.extend({
  region: regionSchema,
  // An explanation for people. It ends no poll.
  error: z
    .string()
    .transform((text) => text.toWellFormed().replaceAll('\0', ' '))
    .optional(),
  created_at: anyTimestampSchema,
  updated_at: anyTimestampSchema,
});

const volume = volumeSchema.extend({
  region: regionSchema,
  attached_instance_ids: z
    .array(z.string())
    .transform((ids) => ids.filter(isUsableId))
    .optional(),
  created_at: anyTimestampSchema.optional(),
});

const volumeLocation = volumeLocationListSchema.shape.locations.element.extend({
  id: regionSchema,
  country_code: z.string().optional(),
});

export const configurationAnswerSchema = toAnswer(configuration);
export const instanceAnswerSchema = toAnswer(instance);
export const volumeAnswerSchema = toAnswer(volume);
export const volumeLocationAnswerSchema = toAnswer(volumeLocation);
export const restartStatusAnswerSchema = toAnswer(
  restartStatusSchema.extend({ since: anyTimestampSchema.optional() }),
);

/** `extras.berth` of a configuration. */
export const berthAnswerSchema = nullAsAbsent(berthExtrasSchema);

/** An instance in a list or in the answer to its create: see {@link Identified}. */
export const identifiedInstanceSchema = toIdentified(instance);
export const identifiedVolumeSchema = toIdentified(volume);

/** Null in an optional field is absent; text that cannot be stored is refused. */
function toAnswer<S extends z.ZodObject>(schema: S) {
  return nullAsAbsent(schema.superRefine(refuseBadText) as S);
}

function refuseBadText(value: unknown, { addIssue }: z.RefinementCtx): void {
  for (const path of pathsOfUnplainText(value))
    addIssue({ code: 'custom', path, message: EXPECTED_PLAIN_TEXT });
}

/** Leaves out each field that cannot be read. An `id` that is not text reads as empty, which {@link isUsableId} refuses. */
function toIdentified<S extends z.ZodObject<{ id: z.ZodString }>>({ shape }: S) {
  const fields = new Map(Object.entries<z.ZodType>(shape).filter(([name]) => name !== 'id'));
  return z.looseObject({ id: z.string().catch('') }).transform((value) => {
    const read = Object.entries(value).flatMap(([name, field]) => {
      const result = fields.get(name)?.safeParse(field);
      return result?.success === true && field !== null ? [[name, result.data]] : [];
    });
    return { ...Object.fromEntries(read), id: value.id } as Identified<z.infer<S>>;
  });
}

/** Whether an id can be stored exactly, written into logs, and be a segment of a path. */
export function isUsableId(id: string): boolean {
  return isPlainText(id) && id.length <= 255 && /^\P{Cc}+$/u.test(id) && id !== '.' && id !== '..';
}

export const volumeUsageAnswerSchema = toAnswer(
  volumeUsageSchema.extend({ measured_at: anyTimestampSchema }),
);

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
