import type { Hunted } from './hunt.ts';
import type { Mutant } from './mutant.ts';

const BEGIN = '<!-- mutants -->';
const END = '<!-- /mutants -->';

/** The hunt as a table in Markdown. A mutant that was not hunted keeps its row of `known`, a table or what has one. */
export function toTable(
  mutants: readonly Mutant[],
  found: ReadonlyMap<string, Hunted | null>,
  known = '',
): string {
  const rows = mutants.map(({ id, title }) => {
    const row = rowOf(id, known);
    if (!found.has(id) && row !== undefined) return row;
    const hunted = found.get(id);
    if (hunted === null || hunted === undefined) return `| ${id} | ${title} | not found | |`;
    return `| ${id} | ${title} | ${hunted.invariant} | ${hunted.seed} |`;
  });
  return ['| mutant | what goes wrong | caught by | seed |', '|---|---|---|---|', ...rows].join('\n');
}

/** The seed that finds the mutant by the table in that text. @throws {Error} if there is none */
export function seedOf(id: string, text: string): number {
  const seed = Number(rowOf(id, text)?.split('|')[4]);
  if (!(seed > 0))
    throw new Error(`no seed is known for ${id}: npm run sim:mutants -- --update --only ${id}`);
  return seed;
}

/** Invariants have rows in the document too, and some have the id of a mutant. */
function rowOf(id: string, text: string): string | undefined {
  const begin = Math.max(0, text.indexOf(BEGIN));
  return text
    .slice(begin)
    .split('\n')
    .find((line) => line.startsWith(`| ${id} |`));
}

/** @throws {Error} if the text has no place for the table */
export function replaceTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`there is no ${BEGIN} … ${END}`);
  return `${text.slice(0, begin)}${BEGIN}\n\n${table}\n\n${text.slice(end)}`;
}
