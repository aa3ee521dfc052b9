import type { ProbeSummary, StoredProbe } from './records.ts';

const NOTHING = { good: 0, of: 0 };

/** A probe in which nothing was wrong. */
export function probeAt(
  startedAt: number,
  changed: Partial<ProbeSummary> = {},
  kind: StoredProbe['kind'] = 'read',
) {
  const summary: ProbeSummary = {
    end: 'completed',
    passed: ['CFG-LIST-001'],
    failed: [],
    warned: [],
    notTested: [],
    latenciesMs: [20],
    answered: { good: 10, of: 10 },
    reached: kind === 'machine' ? { good: 5, of: 5 } : NOTHING,
    stocked: NOTHING,
    priced: NOTHING,
    clean: NOTHING,
    costUsd: 0,
    left: 0,
    ...changed,
  };
  return { runId: `r${startedAt}`, provider: 'a', kind, startedAt, summary } satisfies StoredProbe;
}

export const fault = (check: string) => ({ check, expected: 'this', actual: 'that' });
