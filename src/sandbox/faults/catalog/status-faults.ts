import { z } from 'zod';
import { type ErrorCode, errorTable } from '../../../contract/errors.ts';
import type {
  ErrorBody,
  ErrorCode as MarketplaceCode,
  RateLimitBody,
} from '../../../marketplace/contract/errors.ts';
import type { HttpFault } from '../fault.ts';
import { withText } from '../rewrite.ts';

const carriedOut = {
  done: z.boolean().default(false).meta({ description: 'Whether the request is carried out nevertheless.' }),
};
const retryAfter = { ...carriedOut, retry_after_s: z.int().min(0).default(2) };
type Options = { done: boolean; retry_after_s?: number };

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

function refusal(
  { url }: Request,
  status: number,
  code: string,
  { retry_after_s: seconds }: Partial<Options>,
): Response {
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

function statusFault<S extends z.ZodObject>(
  params: S,
  row: Pick<HttpFault<S>, 'does' | 'strikes' | 'reddens'> & { on?: string[] },
  reply: (request: Request, params: z.infer<S>) => Response,
): HttpFault<S> {
  return {
    layer: 'status',
    on: ['*'],
    params,
    ...row,
    async answer({ request, params: given }, ask) {
      const made = reply(request, given);
      if ((given as Partial<Options>).done) await (await ask()).arrayBuffer();
      return made;
    },
  };
}

/** A fault with an error of the contract's table. */
function errorOf<S extends z.ZodRawShape = typeof carriedOut>(
  code: ErrorCode,
  row: Parameters<typeof statusFault<z.ZodObject<S>>>[1],
  shape = carriedOut as unknown as S,
) {
  const { status } = errorTable[code];
  const reply = (request: Request, given: object) => refusal(request, status, code, given);
  return statusFault(z.object(shape), row, reply);
}

function gateway(status: number, title: string, strikes: string, done: boolean) {
  const params = z.object({ done: z.boolean().default(done) });
  return statusFault(
    params,
    {
      does: `${status}, with the HTML page of a proxy.${done ? ' The request was carried out.' : ''}`,
      strikes,
    },
    () => page(status, title),
  );
}

function page(status: number, title: string): Response {
  const html = `<html>\n<head><title>${title}</title></head>\n<body><center><h1>${title}</h1></center></body>\n</html>\n`;
  return new Response(html, { status, headers: { 'content-type': 'text/html' } });
}

const FALSE_404 = 'O: 404 is the end of an instance, answered only with proof.';

export const statusFaults = {
  'http-401': errorOf('unauthorized', {
    does: '401: the credential is no longer valid.',
    strikes: 'O: invalid credentials are 401.',
  }),
  'http-403': statusFault(
    z.object(carriedOut),
    { does: '403, which the contract does not name.', strikes: 'O: invalid credentials are 401.' },
    (request, given) => refusal(request, 403, 'forbidden', given),
  ),
  'false-404': errorOf('not_found', {
    on: ['GET /instances/{id}', 'DELETE /instances/{id}', 'GET /volumes/{id}'],
    does: '404 for an instance or a volume that exists.',
    strikes: FALSE_404,
  }),
  'capacity-gone': errorOf('capacity_unavailable', {
    on: ['POST /instances'],
    does: '409 for a create although /availability shows capacity: another client was faster.',
    strikes: 'O: /availability is a snapshot; a create may still be 409.',
  }),
  'delete-locked': errorOf('operation_in_progress', {
    on: ['DELETE /instances/{id}', 'DELETE /volumes/{id}'],
    does: '409 for a delete: the platform has locked the resource.',
    strikes: 'M: a termination is retried until it is accepted.',
  }),
  'http-429': errorOf(
    'too_many_requests',
    {
      does: '429 with Retry-After.',
      strikes: 'O: a client waits as long as Retry-After says.',
    },
    retryAfter,
  ),
  'http-500': errorOf('internal', {
    does: '500 with the envelope.',
    strikes: 'M: a 5xx says nothing about a resource.',
  }),
  'http-503': errorOf(
    'unavailable',
    {
      does: '503 with the envelope and Retry-After.',
      strikes: 'M: a 5xx says nothing about a resource.',
    },
    retryAfter,
  ),
  'http-502': gateway(502, '502 Bad Gateway', 'M: a 5xx says nothing about a resource.', false),
  'http-504': gateway(
    504,
    '504 Gateway Time-out',
    'M: a 504 does not say whether a request was carried out.',
    true,
  ),
  'html-page': statusFault(
    z.object({ ...carriedOut, status: z.int().min(200).max(599).default(200) }),
    {
      does: 'An HTML page instead of an answer, with `status`, by default 200.',
      strikes: 'O: bodies are application/json.',
    },
    (_request, { status }) => page(status, 'Scheduled maintenance'),
  ),
  redirect: statusFault(
    z.object({ ...carriedOut, location: z.string().default('https://login.example/') }),
    { does: '302 to a login page.', strikes: 'M: no redirect is followed with a credential.' },
    (_request, { location }) => new Response(null, { status: 302, headers: { location } }),
  ),
  'error-without-envelope': statusFault(
    z.object({ ...carriedOut, status: z.int().min(400).max(599).default(500) }),
    {
      does: 'An error with a shape that the contract does not allow.',
      strikes: 'O: every error has the envelope.',
      reddens: ['ERR-ENVELOPE-001'],
    },
    (_request, { status }) =>
      Response.json({ message: 'Internal server error', statusCode: status }, { status }),
  ),
  'delete-ignored': {
    layer: 'status',
    on: ['DELETE /instances/{id}'],
    params: z.object({}),
    does: 'A delete is answered as accepted, but nothing is done.',
    strikes: 'M: a termination ends when the instance is gone.',
    async answer({ request }, ask) {
      const { url, headers } = request;
      const shown = await ask(new Request(url, { headers }));
      const body = (await shown.clone().json()) as Record<string, unknown>;
      return shown.ok ? withText(shown, JSON.stringify({ ...body, status: 'DESTROYING' })) : shown;
    },
  } satisfies HttpFault,
} as const satisfies Record<string, HttpFault>;
