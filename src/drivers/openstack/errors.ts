import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';
import { failed, refused } from '../../platform-model/steps.ts';
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

/** The cloud's words for a failure, in a refusal or in the fault of a server. The first row that matches counts. */
const words: readonly [RegExp, FailureCode][] = [
  [
    /quota (exceeded|limit)|exceeds? (the )?(allowed|your) quota|over ?quota|maximum number of (ports|instances)/i,
    'quota',
  ],
  [
    /no valid host|no (sufficient|more) (resources|ip addresses)|not enough (hosts|resources)|insufficient|exceeded maximum number of retries|no available (resource|host)|IpAddressGenerationFailure/i,
    'capacity',
  ],
  [/image .*(could not be found|not found|is not active|unacceptable)/i, 'image_missing'],
  [
    /port .* (is still|already) in use|cannot .* while|in vm_state|in task_state|is locked|conflict/i,
    'conflict',
  ],
];

const byStatus: Readonly<Record<number, FailureCode>> = {
  400: 'invalid',
  403: 'auth',
  404: 'gone',
  406: 'unsupported',
  409: 'conflict',
  413: 'quota',
  429: 'transient',
  502: 'transient',
  503: 'transient',
  504: 'transient',
};

/** The code of a failure by its words, else by its status. A 401 counts before the words. */
export function classify(message: string, status = 500): FailureCode {
  if (status === 401) return 'auth';
  return words.find(([pattern]) => pattern.test(message))?.[1] ?? byStatus[status] ?? 'internal';
}

/** @throws {Error} if the outcome is unknown to the core */
export function toFailure(error: unknown): Step<never> {
  if (error instanceof NotReached) return failed('transient', error.message);
  if (!(error instanceof CloudRefusal)) throw error;
  const code = classify(error.message, error.status);
  if (error.status === 429) return failed(code, error.message, 'none', error.retryAfterMs);
  return refused(code, error.message, error.retryAfterMs);
}

const unless =
  (...statuses: readonly number[]) =>
  <T>(reply: Promise<T>): Promise<T | undefined> =>
    reply.catch((error) => {
      if (error instanceof CloudRefusal && statuses.includes(error.status)) return undefined;
      throw error;
    });

/** The answer, or undefined if the resource is gone. */
export const unlessGone = unless(404);
/** The answer, or undefined if the resource is gone, or its state or use forbids the request: read it again and repeat. */
export const unlessConflict = unless(404, 409);
/** The answer, or undefined if this project may not ask that, or the region has no such service. */
export const unlessWithheld = unless(403, 406);
