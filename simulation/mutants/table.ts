import { toRepro } from '../report.ts';
import { HUNT_COMMANDS, type Hunted } from './hunt.ts';
import type { Mutant } from './mutants.ts';

const BEGIN = '<!-- mutants -->';
const END = '<!-- /mutants -->';

/** The hunt as a table in Markdown. A mutant that was not hunted keeps its row of `known`, a table or what has one. */
export function toTable(
  mutants: readonly Mutant[],
  found: ReadonlyMap<string, Hunted | null>,
  known = '',
): string {
  const rows = mutants.map(({ id, title, subject = 'orchestrator' }) => {
    const row = known.split('\n').find((line) => line.startsWith(`| ${id} |`));
    if (!found.has(id) && row !== undefined) return row;
    const hunted = found.get(id);
    if (hunted === null || hunted === undefined) return `| ${id} | ${title} | not found | | |`;
    const commands = HUNT_COMMANDS[subject];
    const repro = toRepro({ seed: hunted.seed, commands }, { subject, mutant: id });
    return `| ${id} | ${title} | ${hunted.invariant} | ${hunted.seed} | \`${repro}\` |`;
  });
  return [
    '| mutant | the program | caught by | seeds needed | repeat it |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

/** @throws {Error} if the text has no place for the table */
export function replaceTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`there is no ${BEGIN} … ${END}`);
  return `${text.slice(0, begin)}${BEGIN}\n\n${table}\n\n${text.slice(end)}`;
}
