import type { Requirement } from '../contract/requirements.ts';
import type { Mutant, Variation } from './mutant.ts';

/** A page in Markdown: the mutants that each check catches, and the variations to which no check objects. */
export function matrixDocument(
  chapters: Readonly<Record<string, readonly Mutant[]>>,
  variations: readonly Variation[],
  requirements: readonly Requirement[],
): string {
  const mutants = Object.values(chapters).flat();
  const checks = requirements.filter(({ checks: proofs }) => proofs !== undefined);
  return [
    '# What each check catches',
    '',
    '`npm run proofs -- matrix` runs the whole suite against a correct orchestrator of its own, against each mutant of',
    'it, and against each lawful variation. A mutant has to fail the checks that it names and no others, and what it does',
    'wrong has to have happened in the run; a variation has to be CONFORMANT.',
    '',
    `${checks.length} requirements with checks, ${mutants.length} mutants, ${variations.length} lawful variations.`,
    '',
    '## Mutants',
    ...Object.entries(chapters).flatMap(([title, list]) => [
      '',
      `### ${title.slice(0, 1).toUpperCase()}${title.slice(1)}`,
      '',
      '| mutant | breaks | goes red |',
      '|---|---|---|',
      ...list.map(({ id, breaks, reddens }) => `| ${id} | ${breaks} | ${reddens.join(', ')} |`),
    ]),
    '',
    '## Checks, and the mutants that they catch',
    '',
    '| requirement | level | caught |',
    '|---|---|---|',
    ...checks.map(({ id, level }) => {
      const caught = mutants.filter(({ reddens }) => reddens.includes(id)).map((mutant) => mutant.id);
      return `| ${id} | ${level} | ${caught.join(', ')} |`;
    }),
    '',
    '## Lawful variations, to which nothing objects',
    '',
    '| variation | why it is lawful |',
    '|---|---|',
    ...variations.map(({ id, why }) => `| ${id} | ${why} |`),
    '',
  ].join('\n');
}
