/** A duration: milliseconds, or text such as `500ms`, `90s`, `1h30m` or `30d`. */
export type Duration = number | string;

export const DURATION = /^(\d+(\.\d+)?(ms|s|m|h|d))+$/;
export const EXPECTED_DURATION = 'expected a duration such as 500ms, 90s, 1h30m or 30d';

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the milliseconds. NaN for a text that is not a duration. */
export function toMilliseconds(duration: Duration): number {
  if (typeof duration === 'number') return duration;
  if (!DURATION.test(duration)) return Number.NaN;
  const parts = [...duration.matchAll(/([\d.]+)(ms|s|m|h|d)/g)];
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0);
}
