import type { StoredProbe, Tally } from '../records.ts';
import { isOf, type Rule } from '../rules.ts';
import { MS_PER_DAY } from '../spending.ts';

/** Whether the probes meet the condition of a rule at `now`, milliseconds since the epoch. */
export function firedBy(rule: Rule, all: readonly StoredProbe[], now: number): boolean {
  const probes = all.filter(({ startedAt }) => startedAt >= now - rule.within_days * MS_PER_DAY);
  switch (rule.revoke_when) {
    case 'fail':
    case 'warn':
      return countFaulty(rule, probes) >= rule.times;
    case 'reached_below':
      return isBelow(rule, probes, 'reached', rule.share);
    case 'answered_below':
      return isBelow(rule, probes, 'answered', rule.share);
    case 'refused_stock_above':
      return isBelow(rule, probes, 'stocked', 1 - rule.share);
    case 'overpriced_above':
      return isBelow(rule, probes, 'priced', 1 - rule.share);
    case 'latency_above': {
      const latencies = probes.flatMap(({ summary }) => summary.latenciesMs);
      return latencies.length >= rule.samples && (percentile(latencies, rule.percentile) ?? 0) > rule.ms;
    }
  }
}

/** The most probes in which one check of the rule failed, or warned. */
function countFaulty(rule: Extract<Rule, { of: string }>, probes: readonly StoredProbe[]): number {
  const counts = new Map<string, number>();
  for (const { summary } of probes) {
    const faults = rule.revoke_when === 'fail' ? summary.failed : summary.warned;
    for (const { check } of faults) if (isOf(rule.of, check)) counts.set(check, (counts.get(check) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

function isBelow(
  { samples }: { samples: number },
  probes: readonly StoredProbe[],
  what: 'reached' | 'answered' | 'stocked' | 'priced',
  share: number,
): boolean {
  const sum = (part: keyof Tally): number =>
    probes.reduce((total, { summary }) => total + summary[what][part], 0);
  return sum('of') >= samples && sum('good') / sum('of') < share;
}

/** The value below or at which `percent` of the values are; undefined without values. */
function percentile(values: readonly number[], percent: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}

/** The percentiles that a certificate shows; null without values. */
export function percentilesOf(
  values: readonly number[],
): { reads: number; p50: number; p95: number; p99: number } | null {
  const at = (percent: number): number => percentile(values, percent) ?? 0;
  return values.length === 0 ? null : { reads: values.length, p50: at(50), p95: at(95), p99: at(99) };
}
