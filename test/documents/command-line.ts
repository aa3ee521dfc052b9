import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { suiteCommand } from '../../conformance/cli.ts';
import { commandsOf } from '../../src/cli/commands.ts';
import { createProgram, loadCommands } from '../../src/cli/program.ts';
import { root } from './pages.ts';

const scripts = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts);

/** `berth` with each of its commands, as `--help` has them. */
export async function loadBerth(): Promise<Command> {
  const own = await loadCommands(
    commandsOf(() => true, {}),
    () => true,
  );
  return createProgram([...own, suiteCommand()], '0');
}

export const commandsBelow = (command: Command): Command[] =>
  command.commands.flatMap((inner) => [inner, ...commandsBelow(inner)]);

/** The words of each simple command of a line of shell: what stands between `|`, `&&`, `;` and `&`. */
export function wordsOf(line: string): string[][] {
  const commands: string[][] = [[]];
  const parts = line
    .replaceAll('\\\n', ' ')
    .matchAll(/"((?:\\"|[^"])*)"|'([^']*)'|(\\?[|&;\n]+)|( #.*$)|((?:\$\([^)]*\)|[^\s"'|&;])+)/gm);
  for (const [whole, double, single, end, comment, bare] of parts) {
    if (comment !== undefined) continue;
    if (end !== undefined && !end.startsWith('\\')) commands.push([]);
    else commands.at(-1)?.push(double ?? single ?? bare ?? whole);
  }
  return commands.filter(({ length }) => length > 0);
}

/** What Berth's command line or package.json knows nothing of in this command; none of another program's is looked at. */
export function findMistake(berth: Command, words: readonly string[], whole: boolean): string | undefined {
  const start = words.findIndex((word) => !/^\w+=/.test(word));
  const [program, ...rest] = words.slice(start).filter((word) => word !== '<command>' && word !== '…');
  if (program === 'npx' && rest[0] === 'berth') return findMistakeOfBerth(berth, rest.slice(1), whole);
  if (program === 'berth') return findMistakeOfBerth(berth, rest, whole);
  if (program === 'npm' && rest[0] === 'run') return findMistakeOfRun(berth, rest.slice(1), whole);
  return undefined;
}

function findMistakeOfRun(berth: Command, words: readonly string[], whole: boolean): string | undefined {
  const [script, dashes, ...rest] = words.filter((word) => word !== '-s');
  if (script === undefined) return undefined;
  if (!scripts.includes(script)) return `package.json has no script ${script}`;
  return script === 'berth' && dashes === '--' ? findMistakeOfBerth(berth, rest, whole) : undefined;
}

/** Nouns that list without a verb. */
const DEFAULTED = /^(capacity|platforms|orphans|cordons|losses|ledger)$/;

/** `whole`: it is to be run as it stands, so that nothing that it needs may be missing. */
function findMistakeOfBerth(berth: Command, words: readonly string[], whole: boolean): string | undefined {
  let command = berth;
  let rest = [...words];
  for (let inner: Command | undefined = command; inner !== undefined; ) {
    command = inner;
    const [next] = rest;
    inner = command.commands.find((one) => one.name() === next || one.aliases().includes(next ?? ''));
    if (inner !== undefined) rest = rest.slice(1);
    else if (DEFAULTED.test(command.name())) inner = command.commands.find((one) => one.name() === 'ls');
  }
  const { operands, unknown, mistake } = parse(command, rest);
  if (mistake !== undefined && (whole || mistake.code !== 'commander.optionMissingArgument'))
    return mistake.message;
  const [flag = '--help'] = unknown;
  if (flag !== '--help') return `${nameOf(command)} knows no ${flag}`;
  const { registeredArguments: known } = command;
  if (operands.length > known.length && !known.at(-1)?.variadic)
    return `${nameOf(command)} takes ${known.length} arguments, not ${operands.join(' ')}`;
  const needed = known.filter(({ required }) => required).length;
  if (whole && operands.length < needed) return `${nameOf(command)} needs ${needed} arguments`;
  if (whole && command.commands.length > 0 && command.options.length === 0)
    return `${nameOf(command)} does nothing by itself`;
  return undefined;
}

function parse(
  command: Command,
  words: string[],
): { operands: string[]; unknown: string[]; mistake?: CommanderError } {
  try {
    return command
      .configureOutput({ writeErr: () => undefined, outputError: () => undefined })
      .parseOptions(words);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { operands: [], unknown: [], mistake: error };
  }
}

/** `berth keys ls` */
export const nameOf = (command: Command): string =>
  command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;

/** The files of this repository that a command names and that are not there. */
export function findMissingFiles(words: readonly string[]): string[] {
  return words.filter(
    (word) =>
      /^(examples|fixtures|docs|test|src|conformance|openapi)\/[\w./-]+$/.test(word) &&
      !existsSync(join(root, word)),
  );
}
