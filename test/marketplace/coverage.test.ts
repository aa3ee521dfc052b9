import { describe, expect, it } from 'vitest';
import { readTestIds, testIdsOf } from '../support/test-ids.ts';
import { type Clause, Document, findProblems, readClauses } from './coverage.ts';

const clauses = readClauses();
const document = new Document();
const testIds = readTestIds();

it('has the 31 endpoints of M:, and a clause for each [all-endpoints-have-clauses]', () => {
  const endpoints = clauses.flatMap(({ endpoint }) => endpoint ?? []);
  expect(endpoints).toHaveLength(31);
  expect(endpoints.toSorted()).toEqual(document.endpoints.toSorted());
  for (const endpoint of endpoints) expect(endpoint).toMatch(/^[A-Z]+ \/api\/(?!v\d)/);
});

it('names each clause once', () => {
  const ids = clauses.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
});

it.each(clauses)('holds $id', (clause) => {
  expect(findProblems(clause, testIds)).toEqual([]);
  expect(clause.properties?.filter((property) => !document.has(property)) ?? []).toEqual([]);
});

it.each(['Offer group (element of `data[]` in the offers response)', 'Offer', 'Deployment', 'Volume'])(
  'names the fields of each row of %s',
  (section) => {
    const rows = clauses.filter((clause) => clause.section === section && /^[\w, ]+ · /.test(clause.says));
    expect(rows.length).toBeGreaterThan(10);
    for (const { says, properties = [] } of rows)
      for (const field of says.replace(/ · .*/, '').split(', '))
        expect(properties.map((property) => property.replace(/^\w+\./, ''))).toContain(field);
  },
);

describe('what is wrong with a clause', () => {
  const clause = (changes: Partial<Clause>): Clause => ({ id: 'a.b', section: 'A', says: 'b', ...changes });
  const ids = testIdsOf(
    'a.test.ts',
    "it.each([['one [b-one]', 1]])('b %s [b-all]', () => {}); it.skip('c [c-skip]', () => {});",
  );

  it.each([
    [{ shownBy: ['b-all', 'b-one'] }, []],
    [{ about: 'a heading' }, []],
    [{ settled: 'docs/decisions/README.md' }, []],
    [{}, [/neither a test/]],
    [{ settled: 'b.md' }, [/no file b\.md/]],
    [{ shownBy: ['c-skip'] }, [/is skipped/]],
    [{ shownBy: ['b-two', 'b-all'] }, [/no test has the id \[b-two\]/]],
  ])('is found: %j', (changes, problems) => {
    const found = findProblems(clause(changes), ids);
    expect(found).toEqual(problems.map((problem) => expect.stringMatching(problem)));
  });

  it('is a property that the document does not have', () => {
    expect(document.has('Team.members.userId')).toBe(true);
    expect(document.has('Team.members.shoeSize')).toBe(false);
    expect(document.has('Deployment.shoeSize')).toBe(false);
    expect(document.has('Nothing.id')).toBe(false);
  });
});
