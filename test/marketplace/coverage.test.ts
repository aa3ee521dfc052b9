import { describe, expect, it } from 'vitest';
import { type Clause, Document, findProblems, readClauses, toPage } from './coverage.ts';

const clauses = readClauses();
const document = new Document();

it('is written from the clauses (vitest run -u writes docs/marketplace-coverage.md anew)', async () => {
  await expect(toPage(clauses)).toMatchFileSnapshot('../../docs/marketplace-coverage.md');
});

it('has the 31 endpoints of M:, and a clause for each', () => {
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
  expect(findProblems(clause)).toEqual([]);
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
  const read = (path: string): string => {
    if (path !== 'a.test.ts') throw new Error('ENOENT');
    return "it.each([['one case', 1]])('b %s', () => {}); it.skip('c', () => {});";
  };

  it.each([
    [{ shownBy: ['a.test.ts › b %s', 'a.test.ts › b %s › one case'] }, []],
    [{ about: 'a heading' }, []],
    [{ settled: 'a.test.ts' }, []],
    [{}, [/neither a test/]],
    [{ settled: 'b.md' }, [/no file b\.md/]],
    [{ shownBy: ['a.test.ts › c'] }, [/no test "c"/]],
    [{ shownBy: ['a.test.ts › b %s › another case'] }, [/no case "another case"/]],
    [{ shownBy: ['b.test.ts › b %s', 'by hand'] }, [/no test file/, /is not file › title/]],
  ])('is found: %j', (changes, problems) => {
    const found = findProblems(clause(changes), read);
    expect(found).toEqual(problems.map((problem) => expect.stringMatching(problem)));
  });

  it('is a property that the document does not have', () => {
    expect(document.has('Team.members.userId')).toBe(true);
    expect(document.has('Team.members.shoeSize')).toBe(false);
    expect(document.has('Deployment.shoeSize')).toBe(false);
    expect(document.has('Nothing.id')).toBe(false);
  });
});
