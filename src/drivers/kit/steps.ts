import type { FailureCode, Step } from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';

/** The longest that a caller is asked to wait before it looks again. */
const MAX_POLL_AFTER_MS = 1_000;

export function done<T>(value: T): Step<T> {
  return { outcome: 'done', value };
}

/** The platform needs until `until`. The cookie says so; the platform itself does not need it back. */
export function pendingUntil(until: number, clock: Clock): Step<never> {
  const leftMs = Math.max(1, until - clock.now());
  return { outcome: 'pending', cookie: `until-${until}`, pollAfterMs: Math.min(leftMs, MAX_POLL_AFTER_MS) };
}

export function failed(
  code: FailureCode,
  sideEffect: 'none' | 'possible' | 'certain',
  detail: string,
  retryAfterMs?: number,
): Step<never> {
  return { outcome: 'failed', code, sideEffect, detail, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
