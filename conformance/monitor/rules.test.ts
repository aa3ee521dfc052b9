import { describe, expect, it } from 'vitest';
import { firedBy } from './certificate/evaluate.ts';
import { fault, probeAt } from './probe.fixture.ts';
import type { ProbeSummary } from './records.ts';
import { isOf, type Rule, rule, ruleInWords } from './rules.ts';
import { MS_PER_DAY } from './spending.ts';

const NOW = Date.UTC(2026, 1, 1);
const days = 30;

const share = (what: keyof ProbeSummary, good: number, of: number) =>
  probeAt(NOW - 1, { [what]: { good, of } });

describe.each<[Rule, ReturnType<typeof probeAt>[], ReturnType<typeof probeAt>[]]>([
  [
    { revoke_when: 'fail', of: 'SSH-*', times: 2, within_days: days },
    [
      probeAt(NOW - 2, { failed: [fault('SSH-LIVE-001')] }),
      probeAt(NOW - 1, { failed: [fault('SSH-LIVE-001')] }),
    ],
    // Two checks, one failure each; another check; a warning.
    [
      probeAt(NOW - 4, { failed: [fault('SSH-LIVE-001'), fault('SSH-KEYS-001')] }),
      probeAt(NOW - 3, { failed: [fault('CFG-LIST-001')] }),
      probeAt(NOW - 2, { warned: [fault('SSH-LIVE-001')] }),
    ],
  ],
  [
    { revoke_when: 'warn', of: 'INS-PRICE-003', times: 1, within_days: days },
    [probeAt(NOW - 1, { warned: [fault('INS-PRICE-003')] })],
    [probeAt(NOW - 1, { failed: [fault('INS-PRICE-003')] })],
  ],
  [
    { revoke_when: 'reached_below', share: 0.9, samples: 10, within_days: days },
    [share('reached', 8, 10)],
    [share('reached', 9, 10)],
  ],
  [
    { revoke_when: 'answered_below', share: 0.9, samples: 11, within_days: days },
    [share('answered', 8, 11)],
    [share('answered', 0, 10)],
  ],
  [
    { revoke_when: 'refused_stock_above', share: 0.5, samples: 4, within_days: days },
    [share('stocked', 1, 4)],
    [share('stocked', 2, 4)],
  ],
  [
    { revoke_when: 'overpriced_above', share: 0.25, samples: 4, within_days: days },
    [share('priced', 2, 4)],
    [share('priced', 3, 4)],
  ],
  [
    { revoke_when: 'latency_above', percentile: 50, ms: 100, samples: 3, within_days: days },
    [probeAt(NOW - 1, { latenciesMs: [50, 101, 102] })],
    [probeAt(NOW - 1, { latenciesMs: [50, 100, 5000] })],
  ],
])('the rule %o', (given, bad, good) => {
  it('fires on these probes, and not on those', () => {
    expect(firedBy(given, bad, NOW)).toBe(true);
    expect(firedBy(given, good, NOW)).toBe(false);
  });

  it('fires no more once the probes are older than its days', () => {
    expect(firedBy(given, bad, NOW + days * MS_PER_DAY)).toBe(false);
  });

  it('is a sentence', () => {
    expect(ruleInWords(given)).toMatch(/within 30 days$/);
  });
});

it('an unknown rule, or a share above 1, is refused', () => {
  expect(rule.safeParse({ revoke_when: 'never' }).success).toBe(false);
  expect(rule.safeParse({ revoke_when: 'reached_below', share: 95 }).success).toBe(false);
  expect(rule.safeParse({ revoke_when: 'fail', of: 'SSH-.+' }).success).toBe(false);
});

it('a star matches any characters', () => {
  expect(isOf('*', 'SSH-LIVE-001')).toBe(true);
  expect(isOf('SSH-*', 'SSH-LIVE-001')).toBe(true);
  expect(isOf('SSH', 'SSH-LIVE-001')).toBe(false);
  expect(isOf('SSH-*', 'X-SSH-1')).toBe(false);
});
