import { z } from '@hono/zod-openapi';
import { isNestedTooDeeply } from '../../contract/parse-json.ts';

/** Fields whose values are secrets, anywhere in a body. */
const SECRETS = new Set(['api_key', 'password', 'access_token']);

const headersSchema = z.record(z.string(), z.string());

/** One exchange as the caller saw it. Times are those of the sandbox's clock. */
export const journalEntrySchema = z
  .object({
    number: z.int().positive().meta({ description: 'Counts up from 1 since the last reset.' }),
    at: z.iso.datetime(),
    provider: z.string().meta({ description: 'The name of a provider, or `marketplace`.' }),
    account: z.string().optional().meta({ description: 'The account of the key in the request, if known.' }),
    method: z.string(),
    path: z.string().meta({ description: 'With the query, without the prefix of the provider.' }),
    operation: z.string().optional().meta({ description: 'The operationId of its OpenAPI document.' }),
    resource: z.string().optional().meta({
      description: 'The id of the instance, volume or deployment that it created or concerned.',
    }),
    request: z.object({ headers: headersSchema, body: z.unknown().optional() }),
    status: z.int().nullable().meta({ description: 'Null: no answer.' }),
    response: z.object({
      headers: headersSchema,
      body: z.unknown().optional().meta({ description: 'JSON as JSON, everything else as text.' }),
      problem: z.string().optional().meta({ description: 'Why the answer is missing or incomplete.' }),
    }),
    duration_ms: z.int().nonnegative(),
    server: z.object({ status: z.int(), resource: z.string().optional() }).optional().meta({
      description: 'The server’s own answer, if a fault changed what the caller saw.',
    }),
    faults: z.array(z.string()).optional().meta({ description: 'The faults that struck it, by name.' }),
  })
  .meta({ id: 'JournalEntry' });
export type JournalEntry = z.infer<typeof journalEntrySchema>;

/** The kept headers: those that change a request's meaning, and those that a client can act on. */
const REQUEST_HEADERS = ['content-type', 'idempotency-key', 'if-none-match'];
const RESPONSE_HEADERS = ['content-type', 'etag', 'idempotent-replayed', 'retry-after'];

export const requestHeaders = (headers: Headers) => pickHeaders(headers, REQUEST_HEADERS);
export const responseHeaders = (headers: Headers) => pickHeaders(headers, RESPONSE_HEADERS);

function pickHeaders(headers: Headers, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}

/** Returns the body to display: JSON with secrets removed, or text. Undefined if there is none. */
export function toBody(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined;
  if (isNestedTooDeeply(text)) return '[nested too deeply]';
  try {
    return JSON.parse(text, (key, value) =>
      SECRETS.has(key) && typeof value === 'string' ? '[hidden]' : value,
    );
  } catch {
    return text;
  }
}
