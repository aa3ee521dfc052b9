import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { Log } from '../../ports/log.ts';
import {
  ApiError,
  type ErrorCode,
  errorBodySchema,
  errorTable,
  invalidRequest,
  RateLimited,
  rateLimitBodySchema,
} from '../contract/errors.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { HttpEnv } from './deps.ts';

/** Any thrown value as the one error that a client sees. What a 500 was is for the log only. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StoreUnavailable)
    return new ApiError('UNAVAILABLE', 'The marketplace cannot reach its database now; try again.', {
      cause: error,
    });
  if (error instanceof HTTPException && error.status < 500)
    return invalidRequest([{ path: '', message: 'expected a JSON body' }]);
  return new ApiError(
    'INTERNAL_ERROR',
    'The marketplace failed to answer; its log has the cause under the request id.',
    { cause: error },
  );
}

/** An error is ours to mend; what a provider or the database did passes. */
export function logFailure(log: Log, { code, message, cause }: ApiError, fields: object): void {
  const line = { ...fields, code, err: cause };
  if (code === 'INTERNAL_ERROR') log.error(line, 'request failed');
  else log.warn({ ...line, reason: message }, 'request failed');
}

const UNAVAILABLE_RETRY_SECONDS = 5;

/** M: Errors: the body, with the status of the code. */
export function respondWithError(context: Context<HttpEnv>, thrown: unknown, log: Log): Response {
  const error = toApiError(thrown);
  if (error.status >= 500) logFailure(log, error, { request_id: context.get('requestId') });
  context.header('Cache-Control', 'no-store');
  if (error.status === 401) context.header('WWW-Authenticate', 'Bearer');
  if (error.status === 413 || error.status === 408) context.header('Connection', 'close');
  if (error instanceof RateLimited) context.header('Retry-After', String(error.retryAfterSeconds));
  if (error.code === 'UNAVAILABLE') context.header('Retry-After', String(UNAVAILABLE_RETRY_SECONDS));
  return context.json(error.toBody(), error.status);
}

const COMMON: readonly ErrorCode[] = [
  'VALIDATION_ERROR',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_ERROR',
  'UNAVAILABLE',
];

/** The `responses` of a route for the codes that it may answer with; every route may answer with the common ones. */
export function errorResponses(...codes: ErrorCode[]) {
  const meanings = new Map<number, string[]>();
  for (const code of new Set([...codes, ...COMMON])) {
    const { status, meaning } = errorTable[code];
    meanings.set(status, [...(meanings.get(status) ?? []), `\`${code}\`: ${meaning}`]);
  }
  const entries = [...meanings].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, texts]) => [
      status,
      {
        description: texts.join('\n\n'),
        content: {
          'application/json': { schema: status === 429 ? rateLimitBodySchema : errorBodySchema },
        },
      },
    ]),
  );
}
