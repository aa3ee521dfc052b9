import type { Evidence } from '../evidence/evidence.ts';
import { isPolledRead } from '../transcript/exchange.ts';
import type { ReportTiming } from './report.ts';
import { round } from './shown.ts';

const WAITS = {
  'to ONLINE': 'boot/poll',
  'to STOPPED': 'stop/poll',
  'to ONLINE again': 'start/poll',
  'to 404': 'destroy/poll',
} as const;

/** How long the target took, for comparisons between runs. */
export function toTimings(evidence: Evidence): ReportTiming[] {
  const waits = Object.entries(WAITS).flatMap(([what, step]) => {
    const reads = evidence.anySteps(step);
    const [first, last] = [reads[0], reads.at(-1)];
    return first === undefined || last === undefined
      ? []
      : [{ what, ms: round(last.endedAt - first.sentAt) }];
  });
  const polls = evidence.exchanges.filter(isPolledRead);
  const sorted = polls.map(({ answer }) => answer?.firstByteMs ?? 0).toSorted((a, b) => a - b);
  const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1];
  return p95 === undefined ? waits : [...waits, { what: '95th percentile of a polled read', ms: round(p95) }];
}
