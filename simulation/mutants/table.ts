import type { Hunted } from './hunt.ts';
import type { Mutant } from './mutant.ts';

const BEGIN = '<!-- mutants -->';
const END = '<!-- /mutants -->';

/** What caught each mutant, with which seed. A mutant that was not hunted keeps its line of `known`, a table or what has one. */
export function toTable(
  mutants: readonly Mutant[],
  found: ReadonlyMap<string, Hunted | null>,
  known = '',
): string {
  const lines = mutants.map(({ id }) => {
    const line = lineOf(id, known);
    if (!found.has(id) && line !== undefined) return line;
    const hunted = found.get(id);
    return `${id} ${hunted === null || hunted === undefined ? 'not found' : `${hunted.invariant} ${hunted.seed}`}`;
  });
  return ['```', ...lines, '```'].join('\n');
}

/** The seed that finds the mutant by the table in that text. @throws {Error} if there is none */
export function seedOf(id: string, text: string): number {
  const seed = Number(lineOf(id, text)?.split(' ')[2]);
  if (!(seed > 0))
    throw new Error(`no seed is known for ${id}: npm run sim:mutants -- --update --only ${id}`);
  return seed;
}

function lineOf(id: string, text: string): string | undefined {
  return text.split('\n').find((line) => line.startsWith(`${id} `));
}

/** @throws {Error} if the text has no place for the table */
export function replaceTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`there is no ${BEGIN} … ${END}`);
  return `${text.slice(0, begin)}${BEGIN}\n\n${table}\n\n${text.slice(end)}`;
}
