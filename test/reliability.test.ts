import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { findProblem, readTestIds, testIdsOf } from './support/test-ids.ts';

const docs = join(import.meta.dirname, '../docs');
const testIds = readTestIds();

const readPage = (page: string): string => readFileSync(join(docs, page), 'utf8');

/** The lines of docs/reliability.md such as `- **F1: the fault.** What Berth does.` */
const faults = [...readPage('reliability.md').matchAll(/^- \*\*([FX]\d+): .+?\*\* ./gm)].map(([, id]) => id);

const testsOf: Record<string, string[]> = parse(
  readFileSync(join(import.meta.dirname, 'faults.yaml'), 'utf8'),
);

/** Those of docs/track-record.md such as `- I3, `seed commands` `commit`: what went wrong. `test-id``. */
const records = [
  ...readPage('track-record.md').matchAll(/^- ((?:I\d+(?:, )?)+), (.+?): (.+?) (`[^` ]+`)$/gm),
];

/** What is wrong with a cell such as `` `create-answer-lost`, `listing-empty` ``. */
function findProblems(cell = '', all = testIds): string[] {
  return cell.split(', ').flatMap((entry) => {
    const [, id] = /^`([a-z0-9-]+)`$/.exec(entry) ?? [];
    return (id === undefined ? `"${entry}" is not the id of a test` : findProblem(id, all)) ?? [];
  });
}

describe('docs/reliability.md and test/faults.yaml', () => {
  it('have every fault of the matrix, F1 to F65, and those of our own', () => {
    const matrix = Array.from({ length: 65 }, (_, index) => `F${index + 1}`);
    const own = Array.from({ length: 19 }, (_, index) => `X${index + 1}`);
    expect(faults).toEqual([...matrix, ...own]);
    expect(Object.keys(testsOf)).toEqual(faults);
  });

  it.each(Object.entries(testsOf))('name tests that exist for %s', (_, ids) => {
    expect(ids.length).toBeGreaterThan(0);
    expect(ids.flatMap((id) => findProblem(id, testIds) ?? [])).toEqual([]);
  });

  it('explain every invariant that a planted fault or the track record names', () => {
    const idsOf = (page: string, pattern: RegExp): string[] =>
      [...readPage(page).matchAll(pattern)].map(([, id = '']) => id);
    const explained = new Set(idsOf('reliability.md', /^- (I\d+): ./gm));
    const planted = idsOf('../simulation/mutants/seeds.md', /^[\w-]+ (I\d+) \d+$/gm);
    const found = records.flatMap(([, ids = '']) => ids.split(', '));
    expect(planted.length).toBeGreaterThan(30);
    expect([...planted, ...found].filter((id) => !explained.has(id))).toEqual([]);
  });
});

describe('docs/track-record.md', () => {
  it('has every fault that the simulation found', () => {
    expect(records.length).toBeGreaterThanOrEqual(38);
  });

  it.each(records.map(([, , run, , tests]) => [run, tests]))('names tests that exist for %s', (_, tests) => {
    expect(findProblems(tests)).toEqual([]);
  });
});

describe('the ids of tests', () => {
  it('are of one test each', () => {
    const problems = testIds.map(({ id }) => findProblem(id, testIds));
    expect(problems.filter(Boolean)).toEqual([]);
  });

  it('stand at the end of a title, or of the name of a case', () => {
    const text = `
      describe('a [in-describe]', () => {
        it.each([['one [in-case]', 1]])('b %s [in-each]', () => {});
        test(\`c \${d} [in-template]\`, () => {});
      });
      it.each(Object.entries({ 'two [in-key]': 2 }))('%s', () => {});
      other('e [elsewhere]'); it('[no-title]', () => {}); it('f [oneword]', () => {}); it('g paths[0]', () => {});`;
    const found = testIdsOf('a.test.ts', text);
    expect(found.map(({ id }) => id).toSorted()).toEqual([
      ...['in-case', 'in-describe', 'in-each', 'in-key', 'in-template'],
    ]);
    expect(found.filter(({ isSkipped }) => isSkipped)).toEqual([]);
    expect(found.map(({ title }) => title)).toContain(`c \${d}`);
  });

  it('do not count where a test is skipped or still to be written, or stands in what is skipped', () => {
    const text = `
      it.skip('a [x-a]', () => {});
      it.todo('b [x-b]');
      describe.concurrent.skip('c [x-c]', () => { it('d [x-d]', () => {}); });
      test.skip.each([1])('e [x-e]', () => {});
      const cases = { 'one [x-one]': 1 };
      const rows = Object.entries(cases);
      it.skip.each(rows)('%s', () => {});
      const others = ['two [two-cases]'];
      it.each(others)('%s', () => {});
      describe.skipIf(isSlow).concurrent('f [f-runs]', () => { it.concurrent.each([1])('g [g-runs]', () => {}); });
      it('skip [h-runs]', () => {});`;
    const ids = testIdsOf('a.test.ts', text);
    const skipped = ids.filter(({ isSkipped }) => isSkipped).map(({ id }) => id);
    expect(skipped.toSorted()).toEqual(['x-a', 'x-b', 'x-c', 'x-d', 'x-e', 'x-one']);
    const run = ids.filter(({ isSkipped }) => !isSkipped).map(({ id }) => id);
    expect(run.toSorted()).toEqual(['f-runs', 'g-runs', 'h-runs', 'two-cases']);
  });

  it('are missed where none, two or a skipped one is there, or where what is named is no id', () => {
    const all = testIdsOf(
      'a.test.ts',
      "it('a [a-one]'); it('b [b-two]'); it('c [b-two]'); it.skip('d [c-skip]');",
    );
    expect(findProblems('`a-one`', all)).toEqual([]);
    expect(findProblems('`a-one`, `b-two`, `c-skip`, `d-none`, by hand', all)).toEqual([
      expect.stringContaining('several tests have the id [b-two]'),
      expect.stringContaining('is skipped'),
      expect.stringContaining('no test has the id [d-none]'),
      expect.stringContaining('is not the id of a test'),
    ]);
    expect(findProblems('', all)).toEqual([expect.stringContaining('is not the id')]);
  });
});
