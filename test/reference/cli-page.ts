import type { Argument, Command, Option } from 'commander';
import { loadBerth } from '../documents/command-line.ts';

/** docs/cli.md: every command with its flags, from what the commands say of themselves. */
export async function cliPage(): Promise<string> {
  const commands = (await loadBerth()).commands.flatMap((command) => withInner(command, 'berth'));
  const counts = new Map<string, number>();
  for (const { flags } of commands) for (const flag of flags) counts.set(flag, (counts.get(flag) ?? 0) + 1);
  const isCommon = (flag: string): boolean => (counts.get(flag) ?? 0) >= COMMON_FROM;
  return [
    '# The command line',
    '',
    'In a checkout: `npm run -s berth -- <command>`. With the package: `npm pack` makes `berth-<version>.tgz`, and where that is',
    'installed it is `berth <command>`, on Node 24.2 or later (`berth conformance` and `sandbox`: 22.14). The package starts in a',
    'third of the time: [performance.md](performance.md#starting). `--help` after any command prints its part of this page, which is',
    'written from the commands (`npm run generate`).',
    '',
    'The verbs are the same for every noun: `ls` (or `list`), `show` (`get`), `create` (`add`), `rm` (`delete`, `remove`, `destroy`).',
    'Characters that a terminal would act on, or that are invisible, are printed as escapes such as `\\u001b`. `berth instances show',
    'NAME` also finds an instance by its name. A flag wins over an environment variable, which wins over the file:',
    '[configuration.md](configuration.md).',
    '',
    'Most commands share these flags. Each lists the names of those that it takes; the rows with `marketplace` apply to',
    '`berth marketplace …`. YAML has the same data as JSON.',
    '',
    ...tableOf([...counts.keys()].filter(isCommon)),
    ...commands.flatMap((command) => sectionOf(command, isCommon)),
  ].join('\n');
}

/** A flag with the same text at that many commands has its text once, at the top of the page. */
const COMMON_FROM = 20;

interface Described {
  name: string;
  command: Command;
  /** A row of a table for each flag. */
  flags: string[];
}

/** A command and those below it. */
function withInner(command: Command, parent: string): Described[] {
  const name = `${parent} ${command.name()}`;
  const flags = command.options.filter(({ hidden }) => !hidden).map((option) => row(option.flags, option));
  return [{ name, command, flags }, ...command.commands.flatMap((inner) => withInner(inner, name))];
}

function sectionOf({ name, command, flags }: Described, isCommon: (flag: string) => boolean): string[] {
  const shown = command.registeredArguments.map(showArgument).join('');
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  const common = flags.filter(isCommon).map((flag) => flag.match(/--[a-z-]+/)?.[0]);
  return [
    `## ${name}`,
    '',
    `\`${name}${shown}\`: ${toCell(command.description())}.`,
    '',
    ...tableOf([
      ...described.map((argument) => row(showArgument(argument).trim(), argument)),
      ...flags.filter((flag) => !isCommon(flag)),
    ]),
    ...(common.length > 0 ? [`Also ${common.map((flag) => `\`${flag}\``).join(', ')}.`, ''] : []),
  ];
}

const tableOf = (rows: readonly string[]): string[] =>
  rows.length > 0 ? ['| | |', '|---|---|', ...rows, ''] : [];

function showArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? ` <${name}>` : ` [${name}]`;
}

function row(name: string, about: Argument | Option): string {
  const { description, argChoices: choices, defaultValue, defaultValueDescription } = about;
  const otherwise =
    defaultValueDescription ??
    (defaultValue === undefined || defaultValue === false ? undefined : JSON.stringify(defaultValue));
  const notes = [
    ...(choices === undefined ? [] : [choices.map((choice) => `\`${choice}\``).join(', ')]),
    ...(otherwise === undefined ? [] : [`default \`${otherwise}\``]),
  ];
  return `| \`${name}\` | ${[toCell(description), ...notes].join('; ')} |`;
}

const toCell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
