import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import {
  ApiError,
  type ErrorCode,
  errorBodySchema,
  errorTable,
  invalidRequest,
} from '../../contract/errors.ts';
import type { Log } from '../../ports/log.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { HttpEnv } from './deps.ts';

/** Any thrown value as the one error that a client sees. What a 5xx was is for the log only. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof StoreUnavailable)
    return new ApiError('unavailable', 'The orchestrator cannot reach its store now; try again.', {
      cause: error,
      retryAfterSeconds: 5,
    });
  if (error instanceof HTTPException && error.status < 500)
    return invalidRequest([{ path: '', message: 'expected a JSON body' }]);
  return new ApiError(
    'internal',
    'The orchestrator failed to answer; its log has the cause under the request id.',
    { cause: error },
  );
}

/** An error is ours to mend; `unavailable` passes, and what it is of is told once elsewhere and not for each poll. */
export function logFailure(log: Log, { code, cause }: ApiError, fields: object): void {
  const line = { ...fields, code, err: cause };
  if (code === 'internal') log.error(line, 'request failed');
  else log.warn(line, 'request failed');
}

/** O: Errors: the envelope, with the status of the code. */
export function respondWithError(context: Context<HttpEnv>, thrown: unknown, log: Log): Response {
  const error = toApiError(thrown);
  if (error.status >= 500) logFailure(log, error, { request_id: context.get('requestId') });
  context.header('Cache-Control', 'no-store');
  if (error.status === 401) context.header('WWW-Authenticate', 'Bearer');
  if (error.status === 413 || error.status === 408) context.header('Connection', 'close');
  if (error.retryAfterSeconds !== undefined) context.header('Retry-After', String(error.retryAfterSeconds));
  return context.json(error.toBody(), error.status);
}

/** The `responses` of a route for the codes that it may answer with; every route may answer with the common ones. */
export function errorResponses(...codes: ErrorCode[]) {
  const common: ErrorCode[] = ['invalid_request', 'too_many_requests', 'internal', 'unavailable'];
  const meanings = new Map<number, string[]>();
  for (const code of [...codes, ...common]) {
    const { status, meaning } = errorTable[code];
    meanings.set(status, [...(meanings.get(status) ?? []), `\`${code}\`: ${meaning}`]);
  }
  const entries = [...meanings].sort(([a], [b]) => a - b);
  return Object.fromEntries(
    entries.map(([status, texts]) => [
      status,
      { description: texts.join('\n\n'), content: { 'application/json': { schema: errorBodySchema } } },
    ]),
  );
}
