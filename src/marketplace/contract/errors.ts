import { z } from 'zod';
import { CodedError, type Issue, toSentence } from '../../contract/errors.ts';

/**
 * M: Errors defines the first group. Berth defines the second, for which M: says "not shown". Every HTTP server needs
 * the third.
 */
export const errorTable = {
  VALIDATION_ERROR: {
    status: 400,
    meaning: 'Invalid parameters or body, or the rule that the message names.',
  },
  UNAUTHORIZED: { status: 401, meaning: 'The API key is invalid or missing.' },
  FORBIDDEN: { status: 403, meaning: 'Insufficient permissions, or a resource of another user or team.' },
  NOT_FOUND: { status: 404, meaning: 'The resource does not exist.' },
  RATE_LIMIT_EXCEEDED: { status: 429, meaning: 'The rate limit is exceeded.' },
  INTERNAL_ERROR: {
    status: 500,
    meaning: 'Internal server error; the log shows the cause under the request id.',
  },

  ACTION_UNSUPPORTED: {
    status: 400,
    meaning: 'Not supported by the provider, the machine type or the region; do not retry.',
  },
  INVALID_STATUS: { status: 400, meaning: 'Not allowed in the current status; do not retry.' },
  CHANGE_IN_PROGRESS: { status: 409, meaning: 'Another change is in flight; wait a few minutes and retry.' },
  IDEMPOTENCY_MISMATCH: {
    status: 409,
    meaning: 'The Idempotency-Key was used before with another request.',
  },
  PROVIDER_REFUSED: {
    status: 502,
    meaning: 'The provider refused, or its answer was not usable; nothing changed.',
  },
  OUT_OF_STOCK: {
    status: 503,
    meaning:
      'The start was refused, usually because the machine type is out of stock; instance and data are intact.',
  },
  PROVIDER_SLOW: {
    status: 504,
    meaning: 'The provider is slow; the request went through: poll the deployment.',
  },

  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The path exists, the method does not.' },
  REQUEST_TIMEOUT: { status: 408, meaning: 'The request did not arrive in full within the time allowed.' },
  PAYLOAD_TOO_LARGE: { status: 413, meaning: 'The request body is larger than the limit.' },
  HEADERS_TOO_LARGE: { status: 431, meaning: 'The request headers are larger than the limit.' },
  UNAVAILABLE: {
    status: 503,
    meaning:
      'The database is unavailable, or the catalog of the provider has not been read yet; no change is known to have been made.',
  },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof errorTable;

/** The only error that reaches a client (M: Errors). */
export class ApiError extends CodedError<ErrorCode> {
  get status(): (typeof errorTable)[ErrorCode]['status'] {
    return errorTable[this.code].status;
  }

  /** M: Errors: `{ error, code, details? }`. */
  toBody(): ErrorBody | RateLimitBody {
    const { code, message: error, details } = this;
    return details === undefined ? { error, code } : { error, code, details };
  }
}

/** A 429, which has its own body (M: Errors). */
export class RateLimited extends ApiError {
  readonly #windowSeconds: number;

  /** `retryAfterSeconds`: until the next window begins. */
  constructor({ windowSeconds, retryAfterSeconds }: { windowSeconds: number; retryAfterSeconds: number }) {
    super('RATE_LIMIT_EXCEEDED', `Too many requests; try again in ${retryAfterSeconds} s.`, {
      retryAfterSeconds,
    });
    this.#windowSeconds = windowSeconds;
  }

  /** M: Errors: `{ error, message, retryAfter }`, "900 for a 15-minute window". */
  override toBody(): RateLimitBody {
    return { error: this.code, message: this.message, retryAfter: this.#windowSeconds };
  }
}

/** A 400 for one field or rule: `invalid('volumeIds', '…')`. */
export function invalid(path: string, message: string, details: Record<string, unknown> = {}): ApiError {
  return new ApiError('VALIDATION_ERROR', path === '' ? message : `${path}: ${message}`, {
    details: { issues: [{ path, message }], ...details },
  });
}

/** A 400 whose `details.issues[]` names each path and the expected value. */
export function invalidRequest(issues: readonly Issue[]): ApiError {
  const summary = issues.map(toSentence).join('; ');
  return new ApiError('VALIDATION_ERROR', summary || 'The request is invalid.', { details: { issues } });
}

export function notFound(what: string): ApiError {
  return new ApiError('NOT_FOUND', `There is no such ${what}.`);
}

/** M: Authentication, 4: "A resource of another user or team gives 403." */
export function forbidden(what: string): ApiError {
  return new ApiError('FORBIDDEN', `This ${what} belongs to another user or team.`);
}

export const errorBodySchema = z
  .object({
    error: z.string().min(1).meta({ description: 'Short readable text.' }),
    code: z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorBodySchema>;

/** M: Errors: "The rate-limit body is `{ error, message, retryAfter }` (seconds; 900 for a 15-minute window)." */
export const rateLimitBodySchema = z
  .object({
    error: z.string(),
    message: z.string(),
    retryAfter: z.int().positive().meta({ description: 'Seconds; the length of the window.' }),
  })
  .meta({ id: 'RateLimitError' });
export type RateLimitBody = z.infer<typeof rateLimitBodySchema>;
