import type { FailureCode, Step } from '../orchestrator/model/platform-driver.ts';

export function done<T>(value: T): Step<T> {
  return { outcome: 'done', value };
}

/** A pending step that needs `leftMs` more. `phase`: what the platform is doing, if it is known. */
export function pending(cookie: string, leftMs: number, phase?: string, deadlineAt?: number): Step<never> {
  return {
    outcome: 'pending',
    cookie,
    pollAfterMs: Math.max(1, Math.ceil(leftMs)),
    ...(phase !== undefined && { progress: { phase, ...(deadlineAt !== undefined && { deadlineAt }) } }),
  };
}

export type Failure = Extract<Step<never>, { outcome: 'failed' }>;

export function failed(
  code: FailureCode,
  detail: string,
  sideEffect: 'none' | 'possible' | 'certain' = 'none',
  retryAfterMs?: number,
): Failure {
  return {
    outcome: 'failed',
    code,
    sideEffect,
    detail,
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)) }),
  };
}

/** Codes of requests that were refused before anything began. */
const UNTOUCHED = new Set<FailureCode>([
  'invalid',
  'unsupported',
  'image_missing',
  'auth',
  'gone',
  'conflict',
  'quota',
]);

/** A service refused a request, perhaps after it had begun. */
export function refused(code: FailureCode, detail: string, retryAfterMs?: number): Failure {
  return failed(code, detail, UNTOUCHED.has(code) ? 'none' : 'possible', retryAfterMs);
}

/**
 * The partial result of an earlier call cannot be completed. The core orders its removal and makes the resource under
 * another name.
 */
export function unfinished(detail: string): Failure {
  return failed('unfinished', detail, 'certain');
}
