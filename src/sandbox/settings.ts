import type { z } from 'zod';
import { invalidRequest } from '../contract/errors.ts';
import { toIssues } from '../contract/issue-words.ts';
import { toProviderName } from './options.ts';

/** Validates a setting of a test. @throws {ApiError} that names each invalid field */
export function parseSetting<S extends z.ZodType>(schema: S, data: unknown): z.output<S> {
  const parsed = schema.safeParse(data);
  if (!parsed.success) throw invalidRequest(toIssues({ error: parsed.error, data }));
  return parsed.data;
}

/**
 * Returns the setting with the full name of its provider. @throws {ApiError} if that is none of `names`
 */
export function withFullName<S extends { provider?: string | undefined }>(
  setting: S,
  names: readonly string[],
): S {
  if (setting.provider === undefined) return setting;
  const provider = toProviderName(setting.provider);
  if (!names.includes(provider))
    throw invalidRequest([{ path: 'provider', message: `expected one of ${names.join(', ')}` }]);
  return { ...setting, provider };
}
