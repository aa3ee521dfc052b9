import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { Source, sources } from './source-tree.ts';
import { findProblem, readTestIds, skipsTest, testIdsOf } from './test-ids.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const capturesOf = (page: string, pattern: RegExp): string[][] =>
  [...page.matchAll(pattern)].map(([, ...captures]) => captures);

const testIds = readTestIds();
const reliability = read('docs/reliability.md');
const testsOf: Record<string, string[]> = parse(read('test/faults.yaml'));

/** Those of docs/track-record.md such as `- I3, `seed commands` `commit`: what went wrong. `test-id``. */
const trackRecord = read('docs/track-record.md');
const records = capturesOf(trackRecord, /^- (.+?): .+ `([^` ]+)`$/gm);

it('an id belongs to one test, and no test is skipped', () => {
  expect(testIds.length).toBeGreaterThan(500);
  expect(testIds.flatMap(({ id }) => findProblem(id, testIds) ?? [])).toEqual([]);
  expect(sources.filter(skipsTest).map(({ path }) => path)).toEqual([]);
});

it('docs/reliability.md and test/faults.yaml have the same faults, numbered without a gap', () => {
  // Such as `- **F1: the fault.** What Berth does.`
  const faults = capturesOf(reliability, /^- \*\*([FX]\d+): .+?\*\* ./gm).flat();
  const countOf = (letter: string): number => faults.filter((fault) => fault.startsWith(letter)).length;
  const numbered = (letter: string) =>
    Array.from({ length: countOf(letter) }, (_, index) => `${letter}${index + 1}`);
  expect([countOf('F'), countOf('X')]).not.toContain(0);
  expect(faults).toEqual([...numbered('F'), ...numbered('X')]);
  expect(Object.keys(testsOf)).toEqual(faults);
});

it('each fault of the tables names tests that exist', () => {
  const named = [...Object.values(testsOf), ...records.map(([, id = '']) => [id])];
  expect(named.filter((ids) => ids.length === 0)).toEqual([]);
  expect(named.flat().flatMap((id) => findProblem(id, testIds) ?? [])).toEqual([]);
});

it('docs/reliability.md explains every invariant of the track record, each line of which ends in a test', () => {
  const broken = records.flatMap(([run = '']) => run.match(/\bI\d+/g) ?? []);
  expect(capturesOf(trackRecord, /^- (I\d+), .*[^`\n]$/gm)).toEqual([]);
  const explained = capturesOf(reliability, /^- (I\d+): ./gm).flat();
  expect(explained).toEqual(expect.arrayContaining(broken));
  expect(broken).not.toEqual([]);
});

it('finds ids in titles and names of cases, and what is wrong with them', () => {
  // Written in parts, so that this check does not read them as ids of this file.
  const id = (name: string): string => `[${name}]`;
  const text = `
    it.each([['one ${id('in-case')}', 1]])("b %s ${id('in-each')}", () => {});
    test(\`c \${d} ${id('in-template')}\`, () => {}); it('d ${id('twice-there')}'); it('e ${id('twice-there')}');
    it('${id('no-title')}', () => {}); it('f ${id('oneword')}', () => {}); it('g paths[0]', () => {});`;
  const found = testIdsOf(new Source('a.test.ts', text));
  expect(found.slice(0, 3)).toEqual([
    { id: 'in-case', path: 'a.test.ts', title: 'one' },
    { id: 'in-each', path: 'a.test.ts', title: 'b %s' },
    { id: 'in-template', path: 'a.test.ts', title: `c \${d}` },
  ]);
  expect(found).toHaveLength(5);
  expect(['in-case', 'twice-there', 'no-title'].map((name) => findProblem(name, found))).toEqual([
    undefined,
    'several tests have the id [twice-there]: a.test.ts, a.test.ts',
    'no test has the id [no-title]',
  ]);
});

it.each(['skip', 'todo', 'concurrent.skip', 'skip.each([1])'])('sees that a test has .%s', (modifier) => {
  expect(skipsTest(new Source('a.test.ts', `it.${modifier}('a', () => {});`))).toBe(true);
  expect(skipsTest(new Source('a.test.ts', "it.skipIf(isSlow)('a');"))).toBe(false);
});
