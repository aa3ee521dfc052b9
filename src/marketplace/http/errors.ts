import type { OpenAPIHono } from '@hono/zod-openapi';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import { ApiErrors } from '../../http/api/errors.ts';
import { clientOf } from '../../http/wire/client-address.ts';
import type { WireProblem, WireRefusal } from '../../http/wire/server.ts';
import {
  ApiError,
  type ErrorCode,
  errorBodySchema,
  errorTable,
  invalidRequest,
  rateLimitBodySchema,
} from '../contract/errors.ts';
import type { HttpEnv } from './deps.ts';
import { type RateLimits, rateLimitHeaders } from './rate-limits.ts';

/** M: Errors: the body for every failure, with the status of its code. */
export const errors = new ApiErrors<ErrorCode>({
  table: errorTable,
  common: ['VALIDATION_ERROR', 'RATE_LIMIT_EXCEEDED', 'INTERNAL_ERROR', 'UNAVAILABLE'],
  codes: {
    internal: 'INTERNAL_ERROR',
    unavailable: 'UNAVAILABLE',
    notFound: 'NOT_FOUND',
    methodNotAllowed: 'METHOD_NOT_ALLOWED',
    payloadTooLarge: 'PAYLOAD_TOO_LARGE',
    requestTimeout: 'REQUEST_TIMEOUT',
    headersTooLarge: 'HEADERS_TOO_LARGE',
  },
  words: { server: 'marketplace', store: 'database' },
  bodySchema: (status) => (status === 429 ? rateLimitBodySchema : errorBodySchema),
  isOwn: (error) => error instanceof ApiError,
  create: (code, message, options) => new ApiError(code, message, options),
  malformed: (message) => invalidRequest([{ path: '', message }]),
  sizeDetails: (maxBytes) => ({ maxBytes }),
});

/** The codes of every request about a resource of a team. */
export const ofTeams = ['UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND'] as const;

/** Answers a failure below HTTP with the same body and headers (M: Errors and Limits). It counts for no limit. */
export function refuseWire(
  rateLimits: Pick<RateLimits, 'peek'>,
): (problem: WireProblem, remoteAddress: string | undefined) => WireRefusal {
  return (problem, remoteAddress) => {
    const rateLimit = rateLimits.peek('other', clientOf(remoteAddress, undefined, 0).network);
    return { ...errors.refuseWire(problem), headers: rateLimitHeaders(rateLimit) };
  };
}

/** A router that answers invalid input with a 400 that names each path. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  // M: "Display label only, stored verbatim".
  return newRouter<HttpEnv>((failed) => invalidRequest(toIssues(failed)), ['name']);
}
