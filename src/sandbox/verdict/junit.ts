import type { RuleResult, Verdict } from './verdict.ts';
import { findingText, removableOf, summaryOf, visible } from './words.ts';

/**
 * The verdict as JUnit XML: one test case for each rule. An accepted failure and a rule that was not tested are skipped.
 * A verdict that does not hold has at least one failure.
 */
export function toVerdictJunit(verdict: Verdict): string {
  const { counts, rules, at, holds } = verdict;
  const isUntested = !holds && counts.fail === 0;
  const totals = {
    tests: rules.length + (isUntested ? 1 : 0),
    failures: counts.fail + (isUntested ? 1 : 0),
    errors: 0,
    skipped: counts.accepted + counts.not_tested,
  };
  const notes = [summaryOf(verdict), ...removableOf(verdict)].join('\n');
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ name: 'berth sandbox verdict', ...totals })}>`,
    `<testsuite${attributes({ name: 'berth sandbox verdict', ...totals, timestamp: at })}>`,
    ...rules.map(testCase),
    ...(isUntested ? [nothingTested(verdict)] : []),
    `<system-out>${toXml(notes)}</system-out>`,
    '</testsuite>',
    '</testsuites>',
  ];
  return `${lines.join('\n')}\n`;
}

function testCase(result: RuleResult): string {
  const { rule, judges } = result;
  return `<testcase${attributes({ classname: 'sandbox.verdict', name: `${rule}: ${judges}` })}>${outcome(result)}</testcase>`;
}

function outcome({ result, cites, findings, not_tested: why = '' }: RuleResult): string {
  const texts = findings.map(findingText);
  const reasons = [...new Set(findings.map(({ accepted }) => accepted))].join('; ');
  switch (result) {
    case 'pass':
      return '';
    case 'not_tested':
      return `<skipped${attributes({ message: `not tested: ${why}` })}/>`;
    case 'accepted':
      return `<skipped${attributes({ message: `accepted: ${reasons}` })}/><system-out>${toXml(texts.join('\n'))}</system-out>`;
    case 'fail':
      return `<failure${attributes({ message: texts[0] ?? '' })}>${toXml([cites, ...texts].join('\n'))}</failure>`;
  }
}

function nothingTested({ requests }: Verdict): string {
  const message = `nothing was tested: the journal has ${requests} requests of the client`;
  return `<testcase${attributes({ classname: 'sandbox.verdict', name: 'the client sent requests' })}><failure${attributes({ message })}/></testcase>`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${toXml(String(value))}"`)
    .join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

function toXml(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
