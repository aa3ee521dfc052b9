import type { ProvisionOutcome } from '../../model/history.ts';

const HOUR_MS = 3_600_000;

/** How creates ended in the last hours. */
export interface Outcomes {
  /** Milliseconds from the create to ONLINE. Undefined if no create came ONLINE. */
  p50: number | undefined;
  p95: number | undefined;
  online: number;
  failed: number;
  /** Outcomes of each hour, oldest first. */
  byHour: { from: number; online: number; failed: number }[];
  /** Causes of failure, most frequent first. */
  causes: { cause: string; count: number; anId: string }[];
}

export function summarise(found: readonly ProvisionOutcome[], now: number, hours: number): Outcomes {
  const began = now - hours * HOUR_MS;
  const byHour = Array.from({ length: hours }, (_, hour) => ({
    from: began + hour * HOUR_MS,
    online: 0,
    failed: 0,
  }));
  const times: number[] = [];
  const causes = new Map<string, { count: number; anId: string }>();
  for (const outcome of found) {
    const { at, toStatus, createdAt, instanceId } = outcome;
    const hour = byHour[Math.min(hours - 1, Math.floor((at - began) / HOUR_MS))];
    if (hour === undefined) continue;
    if (toStatus === 'ONLINE') {
      hour.online++;
      if (createdAt !== null) times.push(at - createdAt);
    } else if (toStatus === 'ERROR') {
      hour.failed++;
      const cause = causeOf(outcome);
      causes.set(cause, { count: (causes.get(cause)?.count ?? 0) + 1, anId: instanceId });
    }
  }
  times.sort((a, b) => a - b);
  return {
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    online: byHour.reduce((sum, { online }) => sum + online, 0),
    failed: byHour.reduce((sum, { failed }) => sum + failed, 0),
    byHour,
    causes: [...causes]
      .map(([cause, { count, anId }]) => ({ cause, count, anId }))
      .sort((a, b) => b.count - a.count),
  };
}

/** The smallest value that at least this share of the values does not exceed. */
function quantile(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** Outcomes of calls that succeeded. `gone` is not one: a machine that disappears is why a create failed. */
const SUCCESSFUL = new Set(['done', 'pending', 'observed', 'proved']);

/** The last failed call, such as `ssh: auth` or `create: capacity`, or the step if no call failed. */
function causeOf({ calls, cause }: ProvisionOutcome): string {
  const failed = calls.findLast(({ outcome }) => !SUCCESSFUL.has(outcome));
  return failed === undefined ? cause : `${failed.call}: ${failed.outcome}`;
}
