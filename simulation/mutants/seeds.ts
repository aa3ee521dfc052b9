import type { Hunted } from './hunt.ts';
import type { Mutant } from './mutant.ts';

/** What caught a mutant, and the seed; undefined: no line of the document, seeds.md, names it. */
function findLine(id: string, document: string): string | undefined {
  return document.split('\n').find((line) => line.startsWith(`${id} `));
}

/** The seed of the mutant. @throws {Error} if the document has none */
export function seedOf({ id }: Mutant, document: string): number {
  const seed = Number(findLine(id, document)?.split(' ')[2]);
  if (!(seed > 0))
    throw new Error(`no seed is known for ${id}: npm run sim -- mutants --update --only ${id}`);
  return seed;
}

/** The document with what was found now. A mutant that was not hunted keeps its line. */
export function withFinds(
  document: string,
  mutants: readonly Mutant[],
  found: ReadonlyMap<string, Hunted | null>,
): string {
  const lines = mutants.map(({ id }) => {
    const hunted = found.get(id);
    if (hunted === undefined) return findLine(id, document) ?? `${id} not hunted`;
    return hunted === null ? `${id} not found` : `${id} ${hunted.invariant} ${hunted.seed}`;
  });
  const [head = ''] = document.split('```');
  return `${head}\`\`\`\n${lines.join('\n')}\n\`\`\`\n`;
}
