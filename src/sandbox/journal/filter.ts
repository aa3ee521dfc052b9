import { z } from '@hono/zod-openapi';
import { toProviderName } from '../options.ts';
import type { JournalEntry } from './entry.ts';

/** Selects entries of the journal. An absent field matches any entry. */
export const journalFilterSchema = z
  .strictObject({
    provider: z
      .string()
      .optional()
      .transform((name) => name && toProviderName(name))
      .meta({ type: 'string', description: 'Such as `provider-a` or `a`, or `marketplace`.' }),
    account: z.string().optional(),
    method: z
      .string()
      .optional()
      .transform((method) => method?.toUpperCase())
      .meta({ type: 'string' }),
    path: z.string().optional().meta({
      description: 'A path with its query; `*` stands for any characters.',
      example: '/v1/instances/*',
    }),
    operation: z.string().optional().meta({ example: 'createInstance' }),
    resource: z.string().optional().meta({ description: 'The id of an instance, a volume or a deployment.' }),
    status: z
      .string()
      .regex(/^([1-5](\d\d|xx)|none)$/, 'expected a status such as 404 or 4xx, or none')
      .optional()
      .meta({ description: 'Such as `404` or `4xx`; `none`: no answer came.' }),
    fault: z.string().optional().meta({ description: 'The name of a fault that it triggered, or `any`.' }),
    since: z.coerce.number().int().nonnegative().optional().meta({
      description: 'Only entries with a higher number.',
    }),
    after: z.iso.datetime().optional(),
    before: z.iso.datetime().optional(),
    limit: z.coerce.number().int().positive().max(10_000).optional().meta({
      description: 'If more match, the last ones.',
    }),
  })
  .meta({ id: 'JournalFilter' });
export type JournalFilter = Partial<z.infer<typeof journalFilterSchema>>;

export function isMatch(entry: JournalEntry, filter: JournalFilter): boolean {
  const { provider, account, method, operation, resource, since = 0 } = filter;
  const isEqual = (asked: string | undefined, value: string | undefined): boolean =>
    asked === undefined || asked === value;
  return (
    entry.number > since &&
    isEqual(provider, entry.provider) &&
    isEqual(account, entry.account) &&
    isEqual(method, entry.method) &&
    isEqual(operation, entry.operation) &&
    (isEqual(resource, entry.resource) || entry.made?.includes(resource ?? '') === true) &&
    isPathMatch(filter.path, entry.path) &&
    isStatusMatch(filter.status, entry.status) &&
    isFaultMatch(filter.fault, entry.faults) &&
    (filter.after === undefined || Date.parse(entry.at) >= Date.parse(filter.after)) &&
    (filter.before === undefined || Date.parse(entry.at) < Date.parse(filter.before))
  );
}

/** A pattern without a query matches the path only. */
function isPathMatch(pattern: string | undefined, path: string): boolean {
  if (pattern === undefined) return true;
  const asked = pattern.includes('?') ? path : (path.split('?')[0] ?? path);
  const [first = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return asked === pattern;
  const last = parts.pop() ?? '';
  if (!asked.startsWith(first) || !asked.endsWith(last) || asked.length < first.length + last.length)
    return false;
  let at = first.length;
  for (const part of parts) {
    const found = asked.indexOf(part, at);
    if (found < 0 || found + part.length > asked.length - last.length) return false;
    at = found + part.length;
  }
  return true;
}

function isStatusMatch(asked: string | undefined, status: number | null): boolean {
  if (asked === undefined) return true;
  if (asked === 'none' || status === null) return asked === 'none' && status === null;
  return asked.endsWith('xx') ? Math.floor(status / 100) === Number(asked[0]) : status === Number(asked);
}

function isFaultMatch(asked: string | undefined, faults: readonly string[] = []): boolean {
  if (asked === undefined) return true;
  return asked === 'any' ? faults.length > 0 : faults.includes(asked);
}
