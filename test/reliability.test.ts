import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testTitlesOf } from './support/test-titles.ts';

const root = join(import.meta.dirname, '..');

interface Row {
  fault: string;
  expected: string;
  /** `file › title`. */
  shownBy: string[];
}

/** The rows `| F1 | fault | expected | shown by |` of docs/reliability.md, with one test a line in the last cell. */
function readRows(markdown: string): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (const line of markdown.split('\n')) {
    const cells = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('\\|', '|'));
    const [id = '', fault = '', expected = '', shownBy = ''] = cells;
    if (!/^[FX]\d+$/.test(id)) continue;
    if (rows.has(id)) throw new Error(`${id} stands there twice`);
    rows.set(id, { fault, expected, shownBy: shownBy.split('<br>').map((entry) => entry.trim()) });
  }
  return rows;
}

/** Undefined: the test is there. */
function findProblem(entry: string, read: (path: string) => string): string | undefined {
  const [, path, title] = /^`([^`]+)` › (.+)$/.exec(entry) ?? [];
  if (path === undefined || title === undefined) return `"${entry}" is not \`file\` › title`;
  try {
    return testTitlesOf(path, read(path)).has(title) ? undefined : `${path} has no test "${title}"`;
  } catch {
    return `there is no test file ${path}`;
  }
}

const readFile = (path: string): string => readFileSync(join(root, path), 'utf8');
const rows = readRows(readFile('docs/reliability.md'));

describe('docs/reliability.md', () => {
  it('has every fault of the matrix, F1 to F65, with what is expected, and eight of our own', () => {
    const matrix = Array.from({ length: 65 }, (_, index) => `F${index + 1}`);
    expect([...rows.keys()]).toEqual([...matrix, 'X1', 'X2', 'X3', 'X4', 'X5', 'X6', 'X7', 'X8']);
    const silent = [...rows].filter(([, { fault, expected }]) => fault === '' || expected === '');
    expect(silent).toEqual([]);
  });

  it.each([...rows])('names tests that exist for %s', (_id, { shownBy }) => {
    expect(shownBy.map((entry) => findProblem(entry, readFile)).filter(Boolean)).toEqual([]);
  });
});

it('counts no test that is skipped or still to be written, nor one that stands in what is skipped', () => {
  const text = `
    it.skip('a', () => {});
    it.todo('b');
    describe.concurrent.skip('c', () => { it('d', () => {}); });
    test.skip.each([1])('e', () => {});
    describe.skipIf(isSlow).concurrent('f', () => { it.concurrent.each([1])('g', () => {}); });
    it('skip', () => {});`;
  const titles = testTitlesOf('a.test.ts', text);
  expect([...titles]).toEqual(['f', 'g', 'skip']);
});

it('sees a test that is gone, a file that is gone, and what is no reference', () => {
  const read = (path: string): string => {
    if (path !== 'a.test.ts') throw new Error('ENOENT');
    return "describe('a', () => { it.each([1])('b %s', () => {}); test(`c`, () => {}); other('e'); });";
  };
  const problems = ['`a.test.ts` › a', '`a.test.ts` › b %s', '`a.test.ts` › c'].map((entry) =>
    findProblem(entry, read),
  );
  expect(problems).toEqual([undefined, undefined, undefined]);
  expect(findProblem('`a.test.ts` › e', read)).toContain('no test "e"');
  expect(findProblem('`b.test.ts` › a', read)).toContain('no test file');
  expect(findProblem('by hand', read)).toContain('is not');
});
