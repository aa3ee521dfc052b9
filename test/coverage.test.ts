import { expect, it } from 'vitest';
import { loadRequirements } from '../conformance/contract/requirements.ts';
import { allMutants } from '../conformance/mutants/mutants.ts';
import { variations } from '../conformance/mutants/variations.ts';
import { countClauses, readClauses } from './marketplace/coverage.ts';

it('docs/coverage.md has the totals (npm run generate writes it anew)', async () => {
  const checked = loadRequirements().rows.filter(({ checks }) => checks !== undefined);
  const clauses = countClauses(readClauses());
  const page = [
    '# Coverage',
    '',
    'How much of each specification is tested. `npm run generate -- coverage`, in a clone of the repository, writes the whole lists to',
    'the folder `generated/`.',
    '',
    '| specification | requirements | tested by | whole list |',
    '|---|---|---|---|',
    `| the provider contract: [conformance/requirements.yaml](../conformance/requirements.yaml) | ${checked.length} that a check can decide | ${allMutants.length} broken servers, each caught by exactly the checks that should catch it; ${variations.length} unusual but correct servers, all of them passed | \`generated/conformance-matrix.md\` |`,
    `| the marketplace API: \`test/marketplace/coverage.yaml\` | ${clauses.all} clauses | ${clauses.shown} by ${clauses.tests} tests and cases; ${clauses.all - clauses.shown} have nothing to test | \`generated/marketplace-coverage.md\` |`,
    '',
    '`npm run proofs -- matrix` runs the conformance suite against all of these servers. `npm test` fails for a check that no',
    'broken server fails, for a clause that names no test, and for numbers here that are out of date (`npm run generate` renews',
    'them). What Berth does when something breaks has its own table: [reliability.md](reliability.md).',
    '',
  ];
  await expect(page.join('\n')).toMatchFileSnapshot('../docs/coverage.md');
});
