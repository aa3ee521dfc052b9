import type { Argument, Command, Option } from 'commander';
import { loadBerth } from '../documents/command-line.ts';

/** docs/cli.md: every command with its flags, from what the commands say of themselves. */
export async function cliPage(): Promise<string> {
  const sections = (await loadBerth()).commands.flatMap((command) => sectionsOf(command, 'berth'));
  return [
    '# The command line',
    '',
    'In a checkout: `npm run -s berth -- <command>`. With the package: `npm pack` makes `berth-<version>.tgz`, and where that is',
    'installed it is `berth <command>`, on Node 24.2 or later (`berth conformance` and `sandbox`: 22.14). The package starts in a third of the',
    'time: [performance.md](performance.md#starting). `--help` after any command prints what stands here; this page is written',
    'from the commands (`npm run openapi`).',
    '',
    'The verbs are the same for every noun: `ls` (or `list`), `show` (`get`), `create` (`add`), `rm` (`delete`, `remove`, `destroy`).',
    'Every command prints with `-o json`, `-o yaml` (the same data) or as a table; `--json` is `-o json`. Characters that a terminal would',
    'act on, or that are invisible, are printed as escapes such as `\\u001b`. `berth instances show NAME` finds an instance by its name too.',
    '',
    'A flag wins over an environment variable, which wins over the file: [configuration.md](configuration.md).',
    '',
    ...sections,
  ].join('\n');
}

/** A command, and those below it: one that only holds others has no table. */
function sectionsOf(command: Command, parent: string): string[] {
  const name = `${parent} ${command.name()}`;
  const shown = command.registeredArguments.map(showArgument).join('');
  const rows = [
    ...command.registeredArguments
      .filter(({ description }) => description !== '')
      .map((argument) => row(showArgument(argument).trim(), argument)),
    ...command.options.filter(({ hidden }) => !hidden).map((option) => row(option.flags, option)),
  ];
  return [
    `## ${name}`,
    '',
    `\`${name}${shown}\`: ${toCell(command.description())}.`,
    '',
    ...(rows.length > 0 ? ['| | |', '|---|---|', ...rows, ''] : []),
    ...command.commands.flatMap((inner) => sectionsOf(inner, name)),
  ];
}

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
