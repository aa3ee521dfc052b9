import { parseXml, XmlElement } from '@rgrove/parse-xml';
import { expect, it } from 'vitest';
import { toJunit } from './junit.ts';
import type { Report } from './report.ts';
import { greenReport, reportOf, sampleChecks, sampleReport, sampleRun } from './sample.fixture.ts';

const end = { kind: 'end', at: 5000, reason: 'completed' } as const;
const skipped = { verdict: 'not_applicable', capability: 'all', reason: 'none' } as const;
const REPORTS: readonly (readonly [string, Report])[] = [
  ['of every verdict', sampleReport],
  ['in which all went well', greenReport],
  ['that was cut off', reportOf([sampleRun()], sampleChecks({}))],
  ['of a selection', reportOf([sampleRun({ only: ['WIRE-JSON-001'] }), end], sampleChecks({}))],
  [
    'with a check that could not be made',
    reportOf([sampleRun(), end], sampleChecks({ 'INS-404-001': { verdict: 'not_tested', reason: 'x' } })),
  ],
  [
    'with a failure alone',
    reportOf([sampleRun(), end], sampleChecks({ 'INS-404-001': { verdict: 'fail', of: 1, problems: [] } })),
  ],
  [
    'with a warning alone',
    reportOf([sampleRun(), end], sampleChecks({ 'LAT-POLL-001': { verdict: 'fail', of: 1, problems: [] } })),
  ],
  ['of nothing', reportOf([sampleRun({ only: [] }), end], sampleChecks({ 'INS-404-001': skipped }))],
];

function attribute(xml: string, name: string): number {
  const [, value] = new RegExp(`<testsuites [^>]*\\b${name}="(\\d+)"`).exec(xml) ?? [];
  return Number(value);
}

it.each(REPORTS)('is green only where the exit code is 0: a run %s', (_, report) => {
  const xml = toJunit(report);
  expect(attribute(xml, 'failures') + attribute(xml, 'errors') > 0).toBe(report.exit_code !== 0);
});

it.each(REPORTS)('counts what it holds: a run %s', (_, report) => {
  const xml = toJunit(report);
  expect(attribute(xml, 'tests')).toBe(xml.split('<testcase ').length - 1);
  expect(attribute(xml, 'failures')).toBe(xml.split('<failure ').length - 1);
  expect(attribute(xml, 'errors')).toBe(xml.split('<error ').length - 1);
  expect(attribute(xml, 'skipped')).toBe(xml.split('<skipped ').length - 1);
});

it('has no character that XML cannot hold', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  expect(toJunit(sampleReport)).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/);
});

it('says what may still run in the case of the run', () => {
  expect(toJunit(sampleReport)).toContain('<error message="2 resources may still be running and billing"');
  expect(toJunit(sampleReport)).toContain('berth conformance sweep');
});

const elementsIn = (parent: XmlElement | null): XmlElement[] =>
  parent?.children.filter((child) => child instanceof XmlElement) ?? [];

it('is read by a strict parser as what was meant', () => {
  const suites = elementsIn(parseXml(toJunit(sampleReport)).root);
  expect(suites.map(({ attributes }) => attributes['name'])).toEqual([
    'run',
    'compute: non-conformant',
    'storage: absent',
    'token: absent',
  ]);
  const cases = suites.flatMap(elementsIn).filter(({ name }) => name === 'testcase');
  const results = new Map(cases.map((one) => [one.attributes['name']?.split(' ')[0], elementsIn(one)]));
  expect(results.get('WIRE-JSON-001')).toEqual([]);
  expect(results.get('INS-404-001')?.[0]).toMatchObject({ name: 'failure', attributes: { type: 'MUST' } });
  expect(results.get('INS-FRESH-001')?.[0]?.name).toBe('error');
  expect(results.get('LAT-POLL-001')?.[0]?.name).toBe('system-out');
  expect(results.get('NEG-KEYS-001')?.[0]?.attributes['message']).toBe(
    'not selected: needs --level full; this run was lifecycle',
  );
  expect(results.get('VOL-CREATE-001')?.[0]?.name).toBe('skipped');
  expect(results.get('ERR-ENVELOPE-001')?.[0]?.text).toContain('<script>document.title="owned"</script>');
});
