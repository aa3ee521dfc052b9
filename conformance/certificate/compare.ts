import type { Report, ReportCheck, ReportTiming } from '../report/report.ts';
import { duration } from '../text/wording.ts';

/** The differences between two reports. */
export interface Comparison {
  /** Checks that fail now and did not before. */
  red: ReportCheck[];
  /** Checks that failed before and pass now. */
  green: ReportCheck[];
  /** Checks that gave a verdict before and could not be made now. */
  lost: ReportCheck[];
  /** The ids of the checks that the later report does not have. */
  left_out: string[];
  slower: { before: ReportTiming; now: ReportTiming }[];
}

/** A time that grew by less than half, or by less than 50 ms, is noise. */
const SLOWER = { factor: 1.5, ms: 50 };

export function compare(before: Report, now: Report): Comparison {
  const earlier = new Map(before.checks.map((check) => [check.id, check.verdict]));
  const changed = now.checks.filter(({ id, verdict }) => earlier.get(id) !== verdict);
  const ids = new Set(now.checks.map(({ id }) => id));
  const isRed = (verdict: ReportCheck['verdict'] | undefined): boolean => verdict === 'fail';
  return {
    red: changed.filter(({ verdict }) => isRed(verdict)),
    green: changed.filter(({ id, verdict }) => isRed(earlier.get(id)) && ['pass', 'warn'].includes(verdict)),
    lost: changed.filter(
      ({ id, verdict }) =>
        verdict === 'not_tested' && ['pass', 'fail', 'warn'].includes(earlier.get(id) ?? ''),
    ),
    left_out: before.checks.flatMap(({ id }) => (ids.has(id) ? [] : [id])),
    slower: now.timings.flatMap((timing) => {
      const known = before.timings.find(({ what }) => what === timing.what);
      return known !== undefined && timing.ms >= known.ms * SLOWER.factor && timing.ms - known.ms >= SLOWER.ms
        ? [{ before: known, now: timing }]
        : [];
    }),
  };
}

/** The comparison as text. */
export function toComparisonText(
  before: Report,
  now: Report,
  { red, green, lost, left_out, slower }: Comparison,
): string {
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', `${title} (${lines.length})`, ...lines.map((line) => `  ${line}`)];
  const lineOf = ({ id, reason }: ReportCheck): string => `${id}: ${reason}`;
  const lines = [
    `${before.outcome} (${before.run_id}, ${before.started_at}) → ${now.outcome} (${now.run_id}, ${now.started_at})`,
    ...(before.level === now.level ? [] : [`The levels differ: ${before.level} and ${now.level}.`]),
    ...(before.requirements_digest === now.requirements_digest
      ? []
      : ['They were judged by different versions of the requirements.']),
    ...section('BECAME RED', red.map(lineOf)),
    ...section(
      'BECAME GREEN',
      green.map(({ id }) => id),
    ),
    ...section('NO LONGER TESTED', lost.map(lineOf)),
    ...section('LEFT OUT', left_out),
    ...section(
      'SLOWER',
      slower.map((one) => `${one.now.what}: ${duration(one.before.ms)} → ${duration(one.now.ms)}`),
    ),
  ];
  if (lines.length === 1) lines.push('Nothing became red, green or slower.');
  return `${lines.join('\n')}\n`;
}
