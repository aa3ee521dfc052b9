import { formatUsd } from '../resources/budget.ts';
import { printable } from '../text/printable.ts';
import type { Report, ReportCheck, ReportExchange, ReportTier } from './report.ts';
import { atRunTime, plural } from './words.ts';

const MAX_LINE_CHARACTERS = 20_000;

/**
 * The report as JUnit XML: one suite per tier and one for the run itself. A failed MUST is a failure, and a check that
 * could not be made is an error. If the exit code is not 0, there is at least one failure or error, if necessary for
 * the run itself.
 */
export function toJunit(report: Report): string {
  const { counts } = report;
  const failures = counts.fail;
  const errors = counts.not_tested + (runError(report) === undefined ? 0 : 1);
  const skipped = skippedIn(counts);
  const tests = report.checks.length + 1;
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    open('testsuites', {
      name: 'berth conformance',
      tests,
      failures,
      errors,
      skipped,
      time: seconds(report),
    }),
    ...runSuite(report),
    ...report.tiers.flatMap((tier) => tierSuite(tier, report)),
    '</testsuites>',
  ];
  return `${lines.join('\n')}\n`;
}

function runSuite(report: Report): string[] {
  const error = runError(report);
  const name = `${report.outcome}: ${report.why}`;
  const properties: readonly [string, string | number][] = [
    ['outcome', report.outcome],
    ['base_url', report.base_url],
    ['level', report.level],
    ['run_id', report.run_id],
    ['suite_version', report.suite_version],
    ['requirements_digest', report.requirements_digest],
    ['contract_version', report.contract_version],
    ['cost', formatUsd(report.cost_usd)],
    ['exit_code', report.exit_code],
  ];
  return [
    open('testsuite', {
      name: 'run',
      tests: 1,
      failures: 0,
      errors: error === undefined ? 0 : 1,
      skipped: 0,
      time: seconds(report),
      timestamp: report.started_at,
    }),
    '<properties>',
    ...properties.map(([key, value]) => empty('property', { name: key, value })),
    '</properties>',
    open('testcase', { classname: 'run', name, time: seconds(report) }),
    ...(error === undefined
      ? []
      : [element('error', { message: error, type: report.outcome }, leftoverText(report))]),
    '</testcase>',
    '</testsuite>',
  ];
}

function skippedIn({ not_applicable, not_asked = 0, not_selected, excluded }: Report['counts']): number {
  return not_applicable + not_asked + not_selected + excluded;
}

/** Why the run itself counts as an error; failed checks count by themselves. */
function runError({ exit_code, outcome, why, leftovers }: Report): string | undefined {
  if (leftovers.length > 0) return `${plural(leftovers.length, 'resource')} may still be running and billing`;
  return exit_code === 0 || exit_code === 1 ? undefined : `${outcome}: ${why}`;
}

function leftoverText({ leftovers, sweep_command = '' }: Report): string {
  const lines = leftovers.map(({ type, name, how, command = '' }) => `${type} ${name}: ${how} ${command}`);
  return [...lines, sweep_command].join('\n').trim();
}

function tierSuite({ tier, counts, state }: ReportTier, report: Report): string[] {
  const checks = report.checks.filter((check) => check.tier === tier);
  if (checks.length === 0) return [];
  return [
    open('testsuite', {
      name: `${tier}: ${state}`,
      tests: checks.length,
      failures: counts.fail,
      errors: counts.not_tested,
      skipped: skippedIn(counts),
      time: '0',
      timestamp: report.started_at,
    }),
    ...checks.flatMap((check) => testCase(check, report)),
    '</testsuite>',
  ];
}

function testCase(check: ReportCheck, report: Report): string[] {
  const classname = `${check.tier}.${check.id.replace(/-\d+$/, '')}`;
  const name = `${check.id} ${check.means ?? check.text}`;
  return [open('testcase', { classname, name, time: '0' }), ...resultOf(check, report), '</testcase>'];
}

function resultOf(check: ReportCheck, report: Report): string[] {
  const { verdict, reason, level, capability } = check;
  switch (verdict) {
    case 'pass':
      return [];
    case 'fail':
      return [element('failure', { message: reason, type: level }, explanation(check, report))];
    case 'not_tested':
      return [
        element(
          'error',
          { message: `not tested: ${reason}`, type: verdict },
          `${check.place}: ${check.text}`,
        ),
      ];
    case 'warn':
      return [element('system-out', {}, `warning: ${reason}\n${explanation(check, report)}`)];
    case 'not_applicable':
      return [empty('skipped', { message: `not applicable, without ${capability}: ${reason}` })];
    case 'not_asked':
      return [empty('skipped', { message: `not asked: ${reason}` })];
    case 'not_selected':
      return [empty('skipped', { message: `not selected: ${reason}` })];
    case 'excluded':
      return [empty('skipped', { message: `excluded: ${reason}` })];
  }
}

function explanation(
  { place, text, problems = [], more_problems, cause }: ReportCheck,
  report: Report,
): string {
  const shown = problems[0]?.shown;
  const exchange =
    shown !== undefined && 'exchange' in shown
      ? report.exchanges.find(({ n }) => n === shown.exchange)
      : undefined;
  return [
    `${place}: ${text}`,
    ...problems.flatMap(({ expected, actual, at_ms }) => [
      `expected: ${expected}`,
      `actual:   ${actual}${at_ms === undefined ? '' : ` (at ${atRunTime(at_ms)})`}`,
    ]),
    ...(more_problems === undefined ? [] : [`and ${more_problems} more`]),
    ...(cause === undefined ? [] : [`likely cause: ${cause}`]),
    ...(exchange === undefined ? [] : [`in the server's log: ${inTheLog(exchange)}`]),
    ...(exchange?.curl === undefined ? [] : [`try: ${exchange.curl}`]),
  ].join('\n');
}

function inTheLog({ request_id, user_agent, at }: ReportExchange): string {
  return request_id === '' ? at : `X-Request-Id ${request_id}, User-Agent ${user_agent}`;
}

type Attributes = Readonly<Record<string, string | number>>;

function open(tag: string, attributes: Attributes): string {
  return `<${tag}${attributesOf(attributes)}>`;
}

function empty(tag: string, attributes: Attributes): string {
  return `<${tag}${attributesOf(attributes)}/>`;
}

function element(tag: string, attributes: Attributes, text: string): string {
  return `<${tag}${attributesOf(attributes)}>${toXmlText(text)}</${tag}>`;
}

function attributesOf(attributes: Attributes): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${toXmlText(String(value))}"`)
    .join('');
}

/** Escapes text for XML: invisible characters become escapes, and characters that XML 1.0 cannot hold are dropped. */
function toXmlText(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line, MAX_LINE_CHARACTERS))
    .join('\n')
    .replace(/[\ufffe\uffff]/g, '')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** The duration in seconds, as JUnit expects. */
function seconds({ duration_ms }: Report): string {
  return (duration_ms / 1000).toFixed(3);
}
