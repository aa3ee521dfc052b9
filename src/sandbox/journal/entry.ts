import { hash } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import { isNestedTooDeeply } from '../../contract/parse-json.ts';

/** Fields whose values are secrets, anywhere in a body. */
const SECRETS = new Set(['api_key', 'password', 'access_token']);

const headersSchema = z.record(z.string(), z.string());
const requestHeadersSchema = headersSchema.meta({
  description:
    'Authorization is shown as `Bearer sha256:DIGEST (KEY)`: the first 16 hexadecimal digits of the credential’s SHA-256, and its key as `provider/account`.',
});

/** One exchange as the caller saw it. Times are those of the sandbox's clock. */
export const journalEntrySchema = z
  .object({
    number: z.int().positive().meta({ description: 'Counts up from 1 since the last reset.' }),
    at: z.iso.datetime(),
    provider: z.string().meta({ description: 'The name of a provider, or `marketplace`.' }),
    account: z.string().optional().meta({
      description: 'The account of the key or token; `marketplace` for a request that the marketplace sent.',
    }),
    method: z.string(),
    path: z.string().meta({ description: 'With the query, without the prefix of the provider.' }),
    operation: z.string().optional().meta({ description: 'The operationId of its OpenAPI document.' }),
    resource: z.string().optional().meta({
      description: 'The id of the instance, volume or deployment that it created or concerned.',
    }),
    request: z.object({ headers: requestHeadersSchema, body: z.unknown().optional() }),
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
    made: z.array(z.string()).optional().meta({
      description:
        'The ids of all resources that the server made, if there are several: it got the request twice.',
    }),
    faults: z.array(z.string()).optional().meta({ description: 'The faults that it triggered, by name.' }),
  })
  .meta({ id: 'JournalEntry' });
export type JournalEntry = z.infer<typeof journalEntrySchema>;

/** The kept headers: those that say who sent a request or change its meaning, and those that a client can act on. */
const REQUEST_HEADERS = ['authorization', 'content-type', 'idempotency-key', 'if-none-match', 'user-agent'];
const RESPONSE_HEADERS = [
  'cache-control',
  'content-type',
  'etag',
  'idempotent-replayed',
  'retry-after',
  'x-request-id',
];

const MAX_RECENT = 1_024;

/** Recent values by key, so that equal values are one object in memory. */
export class Recent<T> {
  readonly #values = new Map<string, T>();

  get(key: string, make: () => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size >= MAX_RECENT) this.#values.clear();
    const made = make();
    this.#values.set(key, made);
    return made;
  }
}

/** The headers that the journal keeps. */
export class KeptHeaders {
  readonly #nameOf: (apiKey: string) => string | undefined;
  /** Recent results: a poll mostly repeats the last one. */
  readonly #recent = new Recent<Record<string, string>>();

  /** `nameOf`: the name of a key. */
  constructor(nameOf: (apiKey: string) => string | undefined = () => undefined) {
    this.#nameOf = nameOf;
  }

  of(side: 'request' | 'response', headers: Headers): Record<string, string> {
    const names = side === 'request' ? REQUEST_HEADERS : RESPONSE_HEADERS;
    const values = names.map((name) => headers.get(name));
    return this.#recent.get(`${side} ${JSON.stringify(values)}`, () =>
      Object.fromEntries(
        names.flatMap((name, index) => {
          const value = values[index];
          return value == null ? [] : [[name, name === 'authorization' ? this.#digestOf(value) : value]];
        }),
      ),
    );
  }

  /** Replaces a credential by its digest and the name of its key. */
  #digestOf(value: string): string {
    const [, scheme = '', secret = value] = /^((?:Bearer|Basic) +)(.*)$/i.exec(value) ?? [];
    return `${scheme}sha256:${hash('sha256', secret).slice(0, 16)} (${this.#nameOf(secret) ?? 'another credential'})`;
  }
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
