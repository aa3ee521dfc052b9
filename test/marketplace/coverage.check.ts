import { expect, it } from 'vitest';
import { readTestIds } from '../check/test-ids.ts';
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

it('every clause is named once, and shown by tests that exist or settled', () => {
  const ids = clauses.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
  const problems = clauses.flatMap((clause) =>
    findProblems(clause, testIds, document).map((problem) => `${clause.id}: ${problem}`),
  );
  expect(problems).toEqual([]);
});

it.each(['Offer group (element of `data[]` in the offers response)', 'Offer', 'Deployment', 'Volume'])(
  'the clauses name the fields of each row of %s',
  (section) => {
    const rows = clauses.filter((clause) => clause.section === section && /^[\w, ]+ · /.test(clause.says));
    expect(rows.length).toBeGreaterThan(10);
    for (const { says, properties = [] } of rows)
      expect(properties.map((property) => property.replace(/^\w+\./, ''))).toEqual(
        expect.arrayContaining(says.replace(/ · .*/, '').split(', ')),
      );
  },
);

it.each<[Partial<Clause>, string[]]>([
  [{ shownBy: ['b-one'], properties: ['Team.members.userId'] }, []],
  [{ about: 'a heading' }, []],
  [{ settled: 'docs/decisions/README.md' }, []],
  [{}, ['it has neither a test, nor a reason, nor a place where it is settled']],
  [{ settled: 'b.md' }, ['there is no file b.md']],
  [{ shownBy: ['b-two', 'b-one'] }, ['no test has the id [b-two]']],
  [
    { about: 'fields', properties: ['Team.members.shoeSize', 'Nothing.id'] },
    ['no property Team.members.shoeSize', 'no property Nothing.id'],
  ],
])('what is wrong with a clause is found: %j', (changes, problems) => {
  const clause = { id: 'a.b', section: 'A', says: 'b', ...changes };
  const ids = [{ id: 'b-one', path: 'a.test.ts', title: 'b' }];
  expect(findProblems(clause, ids, document)).toEqual(problems);
});
