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
  const isEqual = (wanted: string | undefined, value: string | undefined): boolean =>
    wanted === undefined || wanted === value;
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
  const wanted = pattern.includes('?') ? path : (path.split('?')[0] ?? path);
  const [first = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return wanted === pattern;
  const last = parts.pop() ?? '';
  if (!wanted.startsWith(first) || !wanted.endsWith(last) || wanted.length < first.length + last.length)
    return false;
  let at = first.length;
  for (const part of parts) {
    const found = wanted.indexOf(part, at);
    if (found < 0 || found + part.length > wanted.length - last.length) return false;
    at = found + part.length;
  }
  return true;
}

function isStatusMatch(wanted: string | undefined, status: number | null): boolean {
  if (wanted === undefined) return true;
  if (wanted === 'none' || status === null) return wanted === 'none' && status === null;
  return wanted.endsWith('xx') ? Math.floor(status / 100) === Number(wanted[0]) : status === Number(wanted);
}

function isFaultMatch(wanted: string | undefined, faults: readonly string[] = []): boolean {
  if (wanted === undefined) return true;
  return wanted === 'any' ? faults.length > 0 : faults.includes(wanted);
}
