import type { ProvisionOutcome } from '../../model/history.ts';

/** How creates ended in the last hours. */
export interface Outcomes {
  /** Milliseconds from the create to ONLINE. Undefined if no create came ONLINE. */
  p50: number | undefined;
  p95: number | undefined;
  online: number;
  failed: number;
  /** Causes of failure, most frequent first. */
  causes: { cause: string; count: number; anId: string }[];
}

export function summarise(found: readonly ProvisionOutcome[]): Outcomes {
  const times: number[] = [];
  const causes = new Map<string, { count: number; anId: string }>();
  const ended = { online: 0, failed: 0 };
  for (const outcome of found) {
    const { at, toStatus, createdAt, instanceId } = outcome;
    if (toStatus === 'ONLINE') {
      ended.online++;
      if (createdAt !== null) times.push(at - createdAt);
    } else if (toStatus === 'ERROR') {
      ended.failed++;
      const cause = causeOf(outcome);
      causes.set(cause, { count: (causes.get(cause)?.count ?? 0) + 1, anId: instanceId });
    }
  }
  times.sort((a, b) => a - b);
  return {
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    ...ended,
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
