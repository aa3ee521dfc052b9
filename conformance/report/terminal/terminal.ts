import { formatUsd } from '../../resources/budget.ts';
import { duration } from '../../text/wording.ts';
import { toExcerpt } from '../excerpt.ts';
import { notAskedIn } from '../features.ts';
import type { Report, ReportCheck, TierState } from '../report.ts';
import { foundChecks, VERDICT_WORDS, wallTime } from '../words.ts';
import { leftoversWarning, receipt } from './money.ts';
import { type Colour, Page } from './paint.ts';
import { failedCheck } from './problem.ts';

export interface TerminalOptions {
  color: boolean;
  /** Width in columns. */
  width: number;
  /** Also lists the checks that passed or were not made. */
  verbose?: boolean;
}

const OUTCOME_COLOURS: Readonly<Record<Report['outcome'], Colour>> = {
  CONFORMANT: 'green',
  'NON-CONFORMANT': 'red',
  INCOMPLETE: 'yellow',
};

const TIER_COLOURS: Readonly<Record<TierState, readonly Colour[]>> = {
  conformant: ['green'],
  'non-conformant': ['red'],
  incomplete: ['yellow'],
  absent: [],
  'not looked at': [],
};

/** Sections that only `verbose` shows. */
const QUIET = [
  ['PASSED', 'pass'],
  ['NOT SELECTED', 'not_selected'],
  ['EXCLUDED', 'excluded'],
] as const;

/** The report for a terminal: first the outcome, then the failures, last the resources that may still be running. */
export function toTerminal(report: Report, { color, width, verbose = false }: TerminalOptions): string {
  const page = new Page(color, width);
  head(page, report);
  toMend(page, report, 'fail', 'WHAT TO MEND, IN THIS ORDER');
  toMend(page, report, 'warn', 'WARNINGS, WHICH DO NOT CHANGE THE OUTCOME');
  const of = (verdict: ReportCheck['verdict']): ReportCheck[] =>
    report.checks.filter((check) => check.verdict === verdict);
  const traced = new Set<string>();
  section(page, 'FAILED', foundChecks(report, 'fail'), ({ check, leader }) => {
    if (leader === check.id || verbose) failedCheck(page, check, report, traced);
    else page.text(`FAIL  ${check.id}: the same cause as ${leader} (--verbose shows it)`, 0);
  });
  section(page, 'WARNINGS', of('warn'), (check) => failedCheck(page, check, report, traced));
  section(
    page,
    'NOT TESTED',
    [...Map.groupBy(of('not_tested'), ({ reason }) => reason)],
    ([reason, checks]) => {
      page.text(`${checks.map(({ id }) => id).join(', ')}: ${reason}`, 2);
      for (const { means, text } of checks.length === 1 ? checks : []) page.text(means ?? text, 4, 'dim');
    },
  );
  section(page, 'NOT ASKED', byCapability(of('not_asked')), (text) => page.text(text, 2));
  section(page, 'NOT APPLICABLE', byCapability(of('not_applicable')), (text) => page.text(text, 2));
  if (verbose)
    for (const [title, verdict] of QUIET)
      section(page, title, of(verdict), (check) => page.text(`${check.id}: ${check.reason}`, 2));
  section(page, 'FEATURES', report.features ?? [], ({ feature, state }) =>
    page.line(`  ${feature.padEnd(30)}  ${state}`),
  );
  counts(page, report);
  receipt(page, report);
  leftoversWarning(page, report);
  return page.toString();
}

function head(page: Page, report: Report): void {
  const { outcome, why, base_url, level, run_id, started_at, duration_ms, cost_usd } = report;
  page.line([outcome, 'bold', OUTCOME_COLOURS[outcome]], `: ${why}`);
  const left = notAskedIn(report);
  if (left.length > 0) page.text(`NOT ASKED: ${left.join(', ')}`, 0);
  page.blank();
  page.text(base_url, 2);
  page.text(
    [
      `level ${level}`,
      `run ${run_id}`,
      wallTime(started_at),
      duration(duration_ms),
      formatUsd(cost_usd),
      `contract ${report.contract_version}`,
    ].join(' · '),
    2,
    'dim',
  );
  if (report.leftovers.length > 0)
    page.text('SOMETHING MAY STILL BE RUNNING AND BILLING: SEE THE END', 2, 'bold', 'red');
}

/** Limit on findings in the summary for the target's developer. */
const MOST_FINDINGS = 10;
const MAX_FINDING_CHARACTERS = 150;

function toMend(page: Page, report: Report, verdict: 'fail' | 'warn', heading: string): void {
  const findings = [...new Set(foundChecks(report, verdict).map(({ finding }) => finding))];
  if (findings.length === 0) return;
  page.heading(heading);
  for (const [index, { title, checks, places }] of findings.slice(0, MOST_FINDINGS).entries()) {
    const where = places === 1 ? '' : `, ${places} places`;
    const more = checks.length === 1 ? '' : ` and ${checks.length - 1} more`;
    page.text(`${String(index + 1).padStart(2)}. ${firstWords(title)} (${checks[0]}${more}${where})`, 2);
  }
  if (findings.length > MOST_FINDINGS) page.text(`and ${findings.length - MOST_FINDINGS} more, below`, 6);
}

function firstWords(title: string): string {
  const { text, more } = toExcerpt(title, MAX_FINDING_CHARACTERS);
  return more === 0 ? text : `${text.replace(/\s+\S*$/, '')} …`;
}

function section<T>(page: Page, title: string, items: readonly T[], show: (item: T) => void): void {
  if (items.length === 0) return;
  page.heading(title);
  for (const item of items) show(item);
}

/** One line for each capability that the target does not have. */
function byCapability(checks: readonly ReportCheck[]): string[] {
  const groups = Map.groupBy(checks, ({ capability = '', reason }) => `${capability}: ${reason}`);
  return [...groups].map(([what, of]) => `${what} (${of.map(({ id }) => id).join(', ')})`);
}

function counts(page: Page, { counts: all, tiers }: Report): void {
  page.heading('CHECKS');
  const words = VERDICT_WORDS.filter(({ verdict }) => (all[verdict] ?? 0) > 0);
  page.text(words.map(({ verdict, word }) => `${all[verdict]} ${word}`).join(' · '), 2);
  for (const tier of tiers) {
    const made = tier.counts.pass + tier.counts.warn + tier.counts.fail;
    const passed = made === 0 ? '' : `, ${tier.counts.pass} of ${made} passed`;
    page.line(`  ${tier.tier.padEnd(8)} `, [tier.state, ...TIER_COLOURS[tier.state]], passed);
  }
}
