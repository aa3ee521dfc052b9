import { z } from 'zod';

/**
 * The table of all error codes: HTTP status, retryability, the OpenAPI responses, docs/errors.md (O: Errors). `retry`:
 * `never` the same request fails again · `later` it may succeed unchanged after a while · `changed` it succeeds once
 * the client has changed something.
 */
export const errorTable = {
  invalid_request: {
    status: 400,
    retry: 'changed',
    meaning: 'The request is malformed or a field is invalid; details.issues[] names each path.',
  },
  cloud_init_unsupported: {
    status: 400,
    retry: 'changed',
    meaning: 'cloud_init was sent for an offer with supports_cloud_init: false.',
  },
  unauthorized: {
    status: 401,
    retry: 'changed',
    meaning: 'The credential is missing, malformed, unknown, expired or revoked.',
  },
  forbidden: { status: 403, retry: 'changed', meaning: 'The key may not do this.' },
  not_found: {
    status: 404,
    retry: 'never',
    meaning: 'The resource does not exist, or belongs to another account.',
  },
  method_not_allowed: { status: 405, retry: 'never', meaning: 'The path exists, the method does not.' },
  request_timeout: {
    status: 408,
    retry: 'later',
    meaning: 'The request did not arrive in full within the time allowed.',
  },
  capacity_unavailable: {
    status: 409,
    retry: 'later',
    meaning:
      'The requested capacity is not available now; details.reason is sold_out, platform_silent, maintenance or withheld.',
  },
  quota_exceeded: {
    status: 409,
    retry: 'changed',
    meaning: 'The account has reached a quota; details.quota names it.',
  },
  invalid_state: {
    status: 409,
    retry: 'changed',
    meaning: 'The resource is in a state that does not allow the operation.',
  },
  operation_in_progress: {
    status: 409,
    retry: 'later',
    meaning: 'Another operation on the resource has not finished yet.',
  },
  resume_unsupported: {
    status: 409,
    retry: 'never',
    meaning: 'The platform cannot resume stopped instances of this offer.',
  },
  restart_unsupported: {
    status: 409,
    retry: 'never',
    meaning: 'The platform cannot restart instances of this offer.',
  },
  resize_unsupported: {
    status: 409,
    retry: 'never',
    meaning: 'The platform cannot change the size of a volume.',
  },
  volume_attached: { status: 409, retry: 'changed', meaning: 'The volume is attached to an instance.' },
  idempotency_mismatch: {
    status: 409,
    retry: 'changed',
    meaning: 'The Idempotency-Key was used before with another request.',
  },
  payload_too_large: { status: 413, retry: 'changed', meaning: 'The request body is larger than the limit.' },
  too_many_requests: {
    status: 429,
    retry: 'later',
    meaning: 'The rate limit is reached; Retry-After gives the seconds to wait.',
  },
  headers_too_large: {
    status: 431,
    retry: 'changed',
    meaning: 'The request headers are larger than the limit.',
  },
  internal: {
    status: 500,
    retry: 'later',
    meaning: 'An internal error of the orchestrator; its log has the cause under the request id.',
  },
  unavailable: {
    status: 503,
    retry: 'later',
    meaning:
      'The orchestrator cannot use its store now, or has not compared it with the platform yet; no change is confirmed.',
  },
} as const satisfies Record<
  string,
  { status: number; retry: 'never' | 'later' | 'changed'; meaning: string }
>;

export type ErrorCode = keyof typeof errorTable;

/** One problem in a request: the path, and what was expected there. */
export interface Issue {
  path: string;
  message: string;
}

/** Formats a path such as `cloud_init.write_files[0].path`. The path of the whole value is empty. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/**
 * An error that reaches a client, with a code of its server's table. `message` is written for the client; `cause` is for
 * the log.
 */
export abstract class CodedError<Code extends string> extends Error {
  override readonly name = 'ApiError';
  readonly code: Code;
  readonly details: Record<string, unknown> | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: Code,
    message: string,
    options: {
      details?: Record<string, unknown> | undefined;
      retryAfterSeconds?: number;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** The only error that reaches a client. A 5xx carries no detail (O: Errors). */
export class ApiError extends CodedError<ErrorCode> {
  get status(): (typeof errorTable)[ErrorCode]['status'] {
    return errorTable[this.code].status;
  }

  /** The body that O: Errors prescribes: `{ error: { code, message, details? } }`. */
  toBody(): ErrorBody {
    const { code, message, details } = this;
    return { error: details === undefined ? { code, message } : { code, message, details } };
  }
}

/** Formats an issue as one sentence: `name is required: a string`, or `name: expected a string`. */
export function toSentence({ path, message }: Issue): string {
  if (path === '') return message;
  return message.startsWith('is required') ? `${path} ${message}` : `${path}: ${message}`;
}

/** Returns a 400 whose `details.issues[]` has the path and the expectation of each issue. */
export function invalidRequest(issues: Issue[]): ApiError {
  const summary = issues.map(toSentence).join('; ');
  return new ApiError('invalid_request', summary || 'The request is invalid.', { details: { issues } });
}

export const errorBodySchema = z
  .object({
    error: z.object({
      code: z
        .enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]])
        .meta({ description: 'Stable machine-readable code.' }),
      message: z.string().min(1).meta({ description: 'Human-readable text.' }),
      details: z
        .record(z.string(), z.unknown())
        .optional()
        .meta({ description: 'Free-form details, such as `issues`.' }),
    }),
  })
  .meta({ id: 'Error', description: 'The body of every error response.' });

export type ErrorBody = z.infer<typeof errorBodySchema>;
