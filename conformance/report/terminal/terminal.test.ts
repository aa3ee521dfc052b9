import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { greenReport, reportOf, sampleReport, sampleRun } from '../sample.fixture.ts';
import { toTerminal } from './terminal.ts';

const plain = toTerminal(sampleReport, { color: false, width: 100 });

it('says the outcome in its first line', () => {
  expect(plain.split('\n')[0]).toBe('NON-CONFORMANT: 5 of 13 checks failed, and 2 more could not be made');
  const green = toTerminal(greenReport, { color: false, width: 100 });
  expect(green.split('\n')[0]).toBe('CONFORMANT: all 15 checks of level lifecycle passed');
  const cut = toTerminal(reportOf([sampleRun()]), { color: false, width: 100 });
  expect(cut).toMatch(/^NON-CONFORMANT|^INCOMPLETE/);
});

it('has failures first, then the other findings, and last what may still run', () => {
  const headings = plain.split('\n').filter((line) => /^[A-Z][A-Z :\d]+$/.test(line));
  expect(headings).toEqual([
    'FAILED',
    'WARNINGS',
    'NOT TESTED',
    'NOT APPLICABLE',
    'FEATURES',
    'CHECKS',
    'COST',
    'MAY STILL BE RUNNING AND BILLING: 2 RESOURCES',
  ]);
  expect(plain.trimEnd().split('\n').at(-1)).toBe('      berth conformance sweep');
});

it('explains a failure', () => {
  const start = plain.indexOf('FAIL  INS-404-001');
  const text = plain.slice(start, plain.indexOf('FAIL  TRACE-PATH-001'));
  for (const part of [
    'An instance that exists is never answered with 404',
    '(Errors, row 404; Instances, rule 2)',
    'expected   200 with the instance',
    'actual     404 not_found',
    '3 of 40, first at +1 min 16 s (2026-03-02 09:31:15 UTC)',
    'A read replica that lags behind',
    'GET /instances/i-9f31c2?region=eu-north → 404 in 24 ms',
    'X-Request-Id 5f0c1f6e-0000-4000-8000-000000000017',
    'User-Agent berth-conformance/0.1.0 run/7k2p online/read',
    '"authorization: Bearer $BERTH_API_KEY"',
    '404           read ×2 ← here',
  ])
    expect(text).toContain(part);
});

it('groups what is not applicable by the capability that is absent', () => {
  expect(plain).toContain(
    '  volumes: GET /volumes/locations was answered 404 (VOL-LOCATION-001, VOL-CREATE-001)\n',
  );
});

it('lists what passed only when that is asked for', () => {
  expect(plain).not.toContain('WIRE-JSON-001');
  const all = toTerminal(sampleReport, { color: false, width: 100, verbose: true });
  for (const { id } of sampleReport.checks) expect(all).toContain(id);
});

it('lets nothing of the target reach the terminal but what is seen as itself', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  expect(plain).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  expect(plain).toContain('\\x1b[2J');
  expect(plain).toContain('\\u202e');
});

it('paints only on request, with the same text', () => {
  const painted = toTerminal(sampleReport, { color: true, width: 100 });
  expect(painted).toContain('\u001b[');
  expect(stripVTControlCharacters(painted)).toBe(plain);
});

it.each([60, 100, 200])('breaks text, but no command, at %i columns', (width) => {
  const lines = toTerminal(sampleReport, { color: false, width }).split('\n');
  const isWhole = (line: string): boolean =>
    /^ +(curl|instance|… |\+)|^NON-CONFORMANT|^FAIL|^WARN|^[A-Z ]+:/.test(line);
  expect(lines.filter((line) => line.length > width && !isWhole(line))).toEqual([]);
  expect(
    lines.filter((line) => line.includes('-X DELETE')).every((line) => line.endsWith('BERTH_API_KEY"')),
  ).toBe(true);
});
