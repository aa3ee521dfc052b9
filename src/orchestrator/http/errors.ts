import type { OpenAPIHono } from '@hono/zod-openapi';
import {
  ApiError,
  type ErrorCode,
  errorBodySchema,
  errorTable,
  invalidRequest,
} from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import { ApiErrors } from '../../http/api/errors.ts';
import type { WireProblem, WireRefusal } from '../../http/wire/server.ts';
import type { HttpEnv } from './deps.ts';

/** O: Errors: the envelope for whatever goes wrong, with the status of the code. */
export const errors = new ApiErrors<ErrorCode>({
  table: errorTable,
  common: ['invalid_request', 'too_many_requests', 'internal', 'unavailable'],
  codes: {
    internal: 'internal',
    unavailable: 'unavailable',
    notFound: 'not_found',
    methodNotAllowed: 'method_not_allowed',
    payloadTooLarge: 'payload_too_large',
    requestTimeout: 'request_timeout',
    headersTooLarge: 'headers_too_large',
  },
  words: { server: 'orchestrator', store: 'store' },
  bodySchema: () => errorBodySchema,
  isOwn: (error) => error instanceof ApiError,
  create: (code, message, options) => new ApiError(code, message, options),
  malformed: (message) => invalidRequest([{ path: '', message }]),
  sizeDetails: (maxBytes) => ({ max_bytes: maxBytes }),
});

/** The envelope also for what is wrong below HTTP. */
export function refuseWire(problem: WireProblem): WireRefusal {
  return errors.refuseWire(problem);
}

/** Input that does not fit is a 400 that names each path. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  return newRouter<HttpEnv>((failed) => invalidRequest(toIssues(failed)));
}
