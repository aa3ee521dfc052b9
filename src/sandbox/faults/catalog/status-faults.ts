import { z } from 'zod';
import { type ErrorCode, errorTable } from '../../../contract/errors.ts';
import type {
  ErrorBody,
  ErrorCode as MarketplaceCode,
  RateLimitBody,
} from '../../../marketplace/contract/errors.ts';
import { type HttpFault, httpFault, type More } from '../fault.ts';
import { withText } from '../rewrite.ts';

const done = z
  .boolean()
  .default(false)
  .meta({ description: 'Whether the request is carried out nevertheless.' });
const retryAfter = { retry_after_s: z.int().min(0).default(2) };
type Done = { done: z.ZodDefault<z.ZodBoolean> };

/** Codes that only the marketplace uses. */
const marketplaceCodes: Partial<Record<number, MarketplaceCode>> = {
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  409: 'CHANGE_IN_PROGRESS',
  429: 'RATE_LIMIT_EXCEEDED',
  500: 'INTERNAL_ERROR',
  503: 'UNAVAILABLE',
};

function refusal({ url }: Request, status: number, code: string, seconds?: number): Response {
  const message = `Answer of an armed fault: ${code}.`;
  const isMarketplace = new URL(url).pathname.startsWith('/api/');
  return Response.json(
    isMarketplace ? marketplaceBody(status, message, seconds) : { error: { code, message } },
    {
      status,
      headers: seconds === undefined ? {} : { 'retry-after': String(seconds) },
    },
  );
}

/** M: Errors: a 429 has a body of its own. */
function marketplaceBody(status: number, text: string, retryAfterS = 1): ErrorBody | RateLimitBody {
  const code = marketplaceCodes[status] ?? 'INTERNAL_ERROR';
  if (status !== 429) return { error: text, code };
  return { error: code, message: text, retryAfter: Math.max(1, retryAfterS) };
}

function page(status: number, title: string): Response {
  const html = `<html>\n<head><title>${title}</title></head>\n<body><center><h1>${title}</h1></center></body>\n</html>\n`;
  return new Response(html, { status, headers: { 'content-type': 'text/html' } });
}

/** Another answer. The request is carried out only if `done` says so. */
function instead<S extends z.ZodRawShape = Record<never, never>>(
  does: string,
  rule: string,
  reply: (request: Request, params: z.output<z.ZodObject<S>>) => Response,
  { params = {} as S, ...more }: More<S> = {},
): HttpFault<Done & S> {
  return httpFault<Done & S>('status', {
    does,
    rule,
    params: { done, ...params },
    ...more,
    async answer({ request, params: given }, ask) {
      const made = reply(request, given as z.output<z.ZodObject<S>>);
      if ((given as { done: boolean }).done) await (await ask()).arrayBuffer();
      return made;
    },
  });
}

/** An error of the contract's table. */
function errorOf<S extends z.ZodRawShape = Record<never, never>>(
  code: ErrorCode,
  does: string,
  rule: string,
  more?: More<S>,
) {
  const reply = (request: Request, { retry_after_s: seconds }: { retry_after_s?: number }) =>
    refusal(request, errorTable[code].status, code, seconds);
  return instead<S>(does, rule, reply, more);
}

const CREDENTIAL = 'O: invalid credentials are 401.';
const SAYS_NOTHING = 'M: a 5xx says nothing about a resource.';

export const statusFaults = {
  'http-401': errorOf('unauthorized', '401: the credential is no longer valid.', CREDENTIAL),
  'http-403': instead('403, which the contract does not name.', CREDENTIAL, (request) =>
    refusal(request, 403, 'forbidden'),
  ),
  'false-404': errorOf(
    'not_found',
    '404 for an instance or a volume that exists.',
    'O: 404 is the end of an instance, answered only with proof.',
    { on: ['GET /instances/{id}', 'DELETE /instances/{id}', 'GET /volumes/{id}'] },
  ),
  'capacity-gone': errorOf(
    'capacity_unavailable',
    '409 for a create although /availability shows capacity: it is lost to another client.',
    'O: /availability is a snapshot; a create may still be 409.',
    { on: ['POST /instances'] },
  ),
  'delete-locked': errorOf(
    'operation_in_progress',
    '409 for a delete: the platform has locked the resource.',
    'M: a termination is retried until it is accepted.',
    { on: ['DELETE /instances/{id}', 'DELETE /volumes/{id}'] },
  ),
  'http-429': errorOf(
    'too_many_requests',
    '429 with Retry-After.',
    'O: a client waits as long as Retry-After says.',
    { params: retryAfter },
  ),
  'http-500': errorOf('internal', '500 with the envelope.', SAYS_NOTHING),
  'http-503': errorOf('unavailable', '503 with the envelope and Retry-After.', SAYS_NOTHING, {
    params: retryAfter,
  }),
  'http-502': instead('502, with the HTML page of a proxy.', SAYS_NOTHING, () =>
    page(502, '502 Bad Gateway'),
  ),
  'http-504': instead(
    '504, with the HTML page of a proxy. The request was carried out.',
    'M: a 504 does not say whether a request was carried out.',
    () => page(504, '504 Gateway Time-out'),
    { params: { done: done.unwrap().default(true) } },
  ),
  'html-page': instead(
    'An HTML page instead of an answer, with `status`, by default 200.',
    'O: bodies are application/json.',
    (_request, { status }) => page(status, 'Scheduled maintenance'),
    { params: { status: z.int().min(200).max(599).default(200) } },
  ),
  redirect: instead(
    '302 to a login page.',
    'M: no redirect is followed with a credential.',
    (_request, { location }) => new Response(null, { status: 302, headers: { location } }),
    { params: { location: z.string().default('https://login.example/') } },
  ),
  'error-without-envelope': instead(
    'An error with a shape that the contract does not allow.',
    'O: every error has the envelope.',
    (_request, { status }) =>
      Response.json({ message: 'Internal server error', statusCode: status }, { status }),
    { params: { status: z.int().min(400).max(599).default(500) }, reddens: ['ERR-ENVELOPE-001'] },
  ),
  'delete-ignored': httpFault('status', {
    on: ['DELETE /instances/{id}'],
    does: 'A delete is answered as accepted, but nothing is done.',
    rule: 'M: a termination ends when the instance is gone.',
    async answer({ request: { url, headers } }, ask) {
      const shown = await ask(new Request(url, { headers }));
      const body = (await shown.clone().json()) as Record<string, unknown>;
      return shown.ok ? withText(shown, JSON.stringify({ ...body, status: 'DESTROYING' })) : shown;
    },
  }),
} as const satisfies Record<string, HttpFault>;
