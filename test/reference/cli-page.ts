import type { Argument, Command, Option } from 'commander';
import { loadBerth, nameOf } from '../documents/command-line.ts';

/** docs/cli.md: every command with its flags, from what the commands say of themselves. */
export async function cliPage(): Promise<string> {
  const everything = (await loadBerth()).commands.flatMap(toSections);
  const common = commonIn(everything);
  const own = new Set(everything.flatMap(({ commands }) => commands.map(toKey)));
  const isRepeated = (command: Described): boolean =>
    command.usage.startsWith('berth marketplace ') &&
    own.has(toKey(command).replace('berth marketplace ', 'berth '));
  const repeated = everything.flatMap(({ commands }) => commands.filter(isRepeated));
  const sections = everything
    .map(({ title, commands }) => ({ title, commands: commands.filter((command) => !isRepeated(command)) }))
    .filter(({ commands }) => commands.length > 0);
  const isSingle = ({ title, commands: [first, ...others] }: Section): boolean =>
    others.length === 0 && first?.usage.split(' [')[0]?.split(' <')[0] === title;
  const singles = sections.filter(isSingle).flatMap(({ commands }) => commands);
  return [
    '# The command line',
    '',
    'In a checkout, `berth() { npm run -s berth -- "$@"; }` defines `berth` for a terminal. `npm pack` makes `berth-<version>.tgz`, which brings it,',
    'on Node 24.2 or later (`berth conformance` and `sandbox`: 22.14). `--help` prints the part of this generated page about a command.',
    '',
    '`ls` may be written `list`; `show`, `get`; `create`, `add`; `rm`, `delete`, `remove` or `destroy`. Invisible characters, and',
    'those that a terminal would act on, are printed as escapes such as `\\u001b`. `berth instances show NAME` also finds an',
    'instance by its name, and an id may be as short as tables show it: `-o wide` and data have whole ids and exact times.',
    'A flag overrides an environment variable, which overrides the file: [configuration.md](configuration.md).',
    '',
    'Each command begins with its heading and takes `--database`, `--config`, `-o` and `--json`, unless it says otherwise; each `ls`',
    'also takes `--limit` and `--watch`. What works through a server takes `--context`; what takes `--yes` asks first, and takes',
    '`--dry-run`. Brackets name other common flags. Under `berth marketplace`, `--config` names a marketplace.yaml, and the',
    'default database is `sqlite:./.berth/marketplace.db`. YAML has the same data as JSON.',
    '',
    ...[...common].filter(([, count]) => count > 0).map(([flag]) => flag),
    ...toLines({ title: 'berth', commands: singles }, new Set(common.keys())),
    ...sections
      .filter((section) => !isSingle(section))
      .flatMap((section) => toLines(section, new Set(common.keys()))),
    '',
    `As without \`marketplace\`: ${repeated.map(({ usage }) => `\`${usage}\``).join(', ')}.`,
    '',
  ].join('\n');
}

/** What has the same text at that many commands, in several sections, has it once, at the top of the page. */
const COMMON_FROM = 3;
/** A command that takes these does not list them; the marketplace's have the same names. */
const EXPECTED = ['--database', '--config', '--output', '--json'];
/** Common flags that no command lists: the top of the page says which take them. */
const IMPLIED = ['--context', '--dry-run'];

interface Described {
  usage: string;
  about: string;
  flags: string[];
  arguments: string[];
}

/** What makes two commands the same to a reader, but for their databases. */
const toKey = ({ usage, about, flags, arguments: own }: Described): string =>
  [usage, about, ...own, ...flags.filter((flag) => !EXPECTED.includes(nameOfRow(flag)))].join('\n');

interface Section {
  title: string;
  commands: Described[];
}

/** A command with those below it; `berth marketplace` is a section for each of its own. */
function toSections(command: Command): Section[] {
  const title = nameOf(command);
  if (command.name() !== 'marketplace') return [{ title, commands: describedOf(command) }];
  return [{ title, commands: [described(command)] }, ...command.commands.flatMap(toSections)];
}

function describedOf(command: Command): Described[] {
  const inner = command.commands.flatMap(describedOf);
  const isOnlyAGroup = inner.length > 0 && command.options.length === 0;
  return isOnlyAGroup ? inner : [described(command), ...inner];
}

function described(command: Command): Described {
  const { registeredArguments, options } = command;
  return {
    usage: `${nameOf(command)}${registeredArguments.map(showArgument).join('')}`,
    about: toText(command.description()).replace(/\.$/, ''),
    flags: options.filter(({ hidden }) => !hidden).map((option) => item(option.flags, option)),
    arguments: registeredArguments
      .filter(({ description }) => description !== '')
      .map((argument) => item(showArgument(argument).trim(), argument)),
  };
}

/** What commands of several sections have with one text; 0: the texts of `berth marketplace` that are not shown. */
function commonIn(sections: readonly Section[]): Map<string, number> {
  const rows = sections.flatMap(({ commands }) => commands.flatMap(rowsOf));
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(row, (counts.get(row) ?? 0) + 1);
  const isSpread = (row: string): boolean =>
    sections.filter(({ commands }) => commands.some((command) => rowsOf(command).includes(row))).length > 1;
  const repeated = [...counts].filter(([row, count]) => count >= COMMON_FROM && isSpread(row));
  const names = repeated.map(([row]) => nameOfRow(row));
  return new Map(
    repeated
      .map(([row, count], index): [string, number] => [
        row,
        names.indexOf(nameOfRow(row)) === index ? count : 0,
      ])
      .filter(([row, count]) => count > 0 || EXPECTED.includes(nameOfRow(row))),
  );
}

const rowsOf = ({ arguments: own, flags }: Described): string[] => [...own, ...flags];

const nameOfRow = (row: string): string => /--[a-z-]+|[<[][a-z]+/.exec(row)?.[0] ?? '';

function toLines({ title, commands }: Section, common: ReadonlySet<string>): string[] {
  const shared = sharedBy(commands, common);
  const bundles = bundlesOf(commands, shared);
  const bundled = new Set([...bundles.values()].flat());
  const missing = commands.map(({ flags }) => missingIn(flags));
  const always = EXPECTED.filter((name) => missing.every((names) => names.includes(name)));
  const lines = commands.flatMap((command, index) => {
    const isList = / ls\b/.test(command.usage);
    const named = command.flags
      .filter((row) => common.has(row) || (shared.has(row) && !bundled.has(row)))
      .map(nameOfRow)
      .filter(
        (name) =>
          ![...EXPECTED, ...IMPLIED].includes(name) && !(isList && ['--limit', '--watch'].includes(name)),
      );
    const taken = [...bundles].filter(([, rows]) => rows.some((row) => command.flags.includes(row)));
    const all = [...taken.map(([name]) => `*${name}*`), ...named.map((name) => `\`${name}\``)];
    const unlimited = isList && !command.flags.some((row) => nameOfRow(row) === '--limit');
    const unless = [
      ...(missing[index] ?? []).filter((name) => !always.includes(name)),
      ...(unlimited ? ['--limit'] : []),
    ];
    return [
      `- \`${shortUsage(command, title)}\`${all.length > 0 ? ` (${all.join(', ')})` : ''}: ${command.about}.${toNo(unless)}`,
      ...rowsOf(command)
        .filter((row) => !common.has(row) && !shared.has(row))
        .map((row) => `  ${row}`),
    ];
  });
  return [
    ...['', `## ${title}`, ''],
    ...(always.length > 0 ? [`${toNo(always).trim()}`, ''] : []),
    ...lines,
    ...[...bundles].flatMap(([name, rows]) => ['', `*${name}*:`, '', ...rows]),
    ...(shared.size > bundled.size ? ['', 'Of several of these:', ''] : []),
    ...[...shared].filter((row) => !bundled.has(row)),
  ];
}

/** Without the words of the section's title, unless the command is the section's own. */
const shortUsage = ({ usage }: Described, title: string): string =>
  /^ [a-z]/.test(usage.slice(title.length)) ? usage.slice(title.length + 1) : usage;

const missingIn = (flags: readonly string[]): string[] =>
  EXPECTED.filter((name) => !flags.some((flag) => nameOfRow(flag) === name));

const toNo = (names: readonly string[]): string =>
  names.length > 0 ? ` No ${names.map((name) => `\`${name}\``).join(', ')}.` : '';

/** What several commands of a section have with the same text. */
function sharedBy(commands: readonly Described[], common: ReadonlySet<string>): Set<string> {
  const rows = commands.flatMap(rowsOf);
  const repeated = rows.filter((row, index) => rows.indexOf(row) !== index && !common.has(row));
  return new Set(rows.filter((row) => repeated.includes(row)));
}

/** A name for three or more flags that the same commands have, by the first of them. */
const BUNDLES: Readonly<Record<string, string>> = {
  '--level': 'run',
  '--api-key-file': 'target',
  '--json': 'report',
  '--name': 'settings',
};

function bundlesOf(commands: readonly Described[], shared: ReadonlySet<string>): Map<string, string[]> {
  const holders = (row: string): string =>
    commands.flatMap(({ flags }, index) => (flags.includes(row) ? index : [])).join(' ');
  const bundles = [...Map.groupBy(shared, holders).values()].filter((rows) => rows.length > 2);
  return new Map(
    bundles.flatMap((rows) => {
      const name = BUNDLES[nameOfRow(String(rows[0]))];
      return name === undefined ? [] : [[name, rows]];
    }),
  );
}

function showArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? ` <${name}>` : ` [${name}]`;
}

const MOST_CHOICES = 10;

function item(name: string, about: Argument | Option): string {
  const { description, argChoices: choices, defaultValue, defaultValueDescription } = about;
  const isSet = defaultValue !== undefined && defaultValue !== false && !Array.isArray(defaultValue);
  const otherwise = (defaultValueDescription ?? (isSet ? String(defaultValue) : undefined))?.replaceAll(
    '"',
    '',
  );
  const notes = [
    ...(choices === undefined
      ? []
      : [
          choices.length > MOST_CHOICES
            ? 'listed by `--help`'
            : choices.map((choice) => `\`${choice}\``).join(', '),
        ]),
    ...(otherwise === undefined ? [] : [`default \`${otherwise}\``]),
  ];
  return `- \`${name}\`: ${[toText(description), ...notes].join('; ')}`;
}

const toText = (text: string): string => text.replaceAll('<', '&lt;');
