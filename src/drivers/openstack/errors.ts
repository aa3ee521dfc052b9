import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';
import { failed } from '../../platform-model/steps.ts';
import { NotReached } from '../../ports/errors.ts';

/** A service of the cloud refused a request. */
export class CloudRefusal extends Error {
  override readonly name = 'CloudRefusal';
  readonly status: number;
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The cloud's words for a failure, in a refusal or in the fault of a server. The first row that matches counts, by words
 * or by status.
 */
const table: readonly { words?: RegExp; status?: number; code: FailureCode }[] = [
  { status: 401, code: 'auth' },
  {
    words:
      /quota (exceeded|limit)|exceeds? (the )?(allowed|your) quota|over ?quota|maximum number of (ports|instances)/i,
    code: 'quota',
  },
  {
    words:
      /no valid host|no (sufficient|more) (resources|ip addresses)|not enough (hosts|resources)|insufficient/i,
    code: 'capacity',
  },
  {
    words: /exceeded maximum number of retries|no available (resource|host)|IpAddressGenerationFailure/i,
    code: 'capacity',
  },
  { words: /image .*(could not be found|not found|is not active|unacceptable)/i, code: 'image_missing' },
  {
    words: /port .* (is still|already) in use|cannot .* while|in vm_state|in task_state|is locked|conflict/i,
    code: 'conflict',
  },
  { status: 400, code: 'invalid' },
  { status: 403, code: 'auth' },
  { status: 404, code: 'gone' },
  { status: 406, code: 'unsupported' },
  { status: 409, code: 'conflict' },
  { status: 413, code: 'quota' },
  { status: 429, code: 'transient' },
  { status: 500, code: 'internal' },
  { status: 502, code: 'transient' },
  { status: 503, code: 'transient' },
  { status: 504, code: 'transient' },
];

export function classify(status: number | undefined, message: string): FailureCode {
  const fits = ({ words, status: of }: (typeof table)[number]): boolean =>
    (words?.test(message) ?? false) || (of !== undefined && of === status);
  return table.find(fits)?.code ?? 'internal';
}

/** Codes and statuses of requests that were refused before anything began. */
const UNTOUCHED = new Set<FailureCode>([
  'invalid',
  'unsupported',
  'image_missing',
  'auth',
  'gone',
  'conflict',
  'quota',
]);
const TOO_MANY_REQUESTS = 429;

/** @throws {Error} if the outcome is unknown to the core */
export function toFailure(error: unknown): Step<never> {
  if (error instanceof NotReached) return failed('transient', error.message);
  if (!(error instanceof CloudRefusal)) throw error;
  const code = classify(error.status, error.message);
  const isUntouched = UNTOUCHED.has(code) || error.status === TOO_MANY_REQUESTS;
  return failed(code, error.message, isUntouched ? 'none' : 'possible', error.retryAfterMs);
}

export function isNotFound(error: unknown): boolean {
  return error instanceof CloudRefusal && error.status === 404;
}

/** Whether the resource is in a state, or used in a way, in which the request is refused: read it again and repeat. */
function isConflict(error: unknown): boolean {
  return error instanceof CloudRefusal && error.status === 409;
}

/** Whether this project may not ask that, or the region has no such service. */
function isWithheld(error: unknown): boolean {
  return error instanceof CloudRefusal && (error.status === 403 || error.status === 406);
}

/** The answer, or undefined if the resource is gone. */
export function unlessGone<T>(reply: Promise<T>): Promise<T | undefined> {
  return unless(isNotFound, reply);
}

/** The answer, or undefined if the resource is gone or its state does not allow the request. */
export function unlessConflict<T>(reply: Promise<T>): Promise<T | undefined> {
  return unless(isConflict, unlessGone(reply));
}

/** The answer, or undefined if this project may not ask for it. */
export function unlessWithheld<T>(reply: Promise<T>): Promise<T | undefined> {
  return unless(isWithheld, reply);
}

function unless<T>(isExpected: (error: unknown) => boolean, reply: Promise<T>): Promise<T | undefined> {
  return reply.catch((error) => {
    if (isExpected(error)) return undefined;
    throw error;
  });
}
