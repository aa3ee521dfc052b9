import { type Argument, type Command, Help, type Option } from 'commander';

/** Placeholders of flags, and names of arguments, whose value is a file or a folder. */
const FILE_FLAG = /^(file|path|folder|report)$/;
const FILE_ARGUMENT = /^(file|transcript|report|before|now)$/;

/**
 * The candidates (`answer`) at one place: `path` is a command such as `berth keys create`, `key` a flag, an argument or
 * an alias below it.
 */
interface Entry {
  path: string;
  key: string;
  answer: string;
}

/**
 * Tables as shell `case` branches. `commands` and `flags` list the words after a path; aliases follow a `+`. `names`
 * maps aliases to names. `values` lists the values of flags and arguments (`#0` is the first argument, `#*` each
 * repeated one): words, `FILES`, `PROGRAM` (the rest belongs to that program), `ANY`, or nothing.
 */
export function toCompletionTable(
  program: Command,
): Record<'commands' | 'flags' | 'names' | 'values', string> {
  const all = flatten(program, program.name());
  const branchesOf = (toAnswer: (command: Command) => readonly string[]): string =>
    toBranches(
      all
        .map(([path, command]): Branch => [path, toAnswer(command).join(' ')])
        .filter(([, answer]) => answer !== ''),
    );
  return {
    commands: branchesOf(commandWords),
    flags: branchesOf((command) => flagsOf(command).flatMap(spellingsOf)),
    names: toBranches(shorten(all.flatMap(aliasEntries))),
    values: toBranches([...shorten(all.flatMap(flagEntries)), ...all.flatMap(argumentEntries).map(toBranch)]),
  };
}

function flatten(command: Command, path: string): [string, Command][] {
  return [[path, command], ...command.commands.flatMap((inner) => flatten(inner, `${path} ${inner.name()}`))];
}

function commandWords(command: Command): string[] {
  const names = new Help().visibleCommands(command).map((inner) => inner.name());
  const aliases = new Set(command.commands.flatMap((inner) => inner.aliases()));
  return aliases.size === 0 ? names : [...names, '+', ...aliases];
}

/** Returns the flags of a command and of its default verb, which Commander's types do not expose. */
function flagsOf(command: Command): Option[] {
  const { _defaultCommandName: verb } = command as { _defaultCommandName?: string | null };
  const inner = command.commands.find((one) => one.name() === verb);
  const all = [...new Help().visibleOptions(command), ...(inner === undefined ? [] : flagsOf(inner))];
  return [...new Map(all.map((option) => [option.flags, option])).values()];
}

const spellingsOf = ({ short, long }: Option): string[] => [short, long].filter((flag) => flag !== undefined);

function aliasEntries([path, command]: [string, Command]): Entry[] {
  return command.commands.flatMap((inner) =>
    inner.aliases().map((key) => ({ path, key, answer: inner.name() })),
  );
}

function flagEntries([path, command]: [string, Command]): Entry[] {
  return flagsOf(command).flatMap((option) => {
    const [, placeholder = ''] = /<([\w-]+)/.exec(option.flags) ?? [];
    const answer = option.required ? toValue(option, FILE_FLAG.test(placeholder)) : '';
    return spellingsOf(option).map((key) => ({ path, key, answer }));
  });
}

function argumentEntries([path, command]: [string, Command]): Entry[] {
  return command.registeredArguments.map((argument, index) => {
    const name = argument.name();
    return {
      path,
      key: argument.variadic ? '#*' : `#${index}`,
      answer: name === 'program' ? 'PROGRAM' : toValue(argument, FILE_ARGUMENT.test(name)),
    };
  });
}

function toValue({ argChoices: choices }: Argument | Option, isFile: boolean): string {
  if (choices !== undefined) return choices.join(' ');
  return isFile ? 'FILES' : 'ANY';
}

/** The pattern and the answer of one `case` branch. */
type Branch = readonly [pattern: string, answer: string];

const toBranch = ({ path, key, answer }: Entry): Branch => [`${path} ${key}`, answer];

/** Creates branches. The most common answer to a key becomes one branch `*' key'`, after the others. */
function shorten(entries: readonly Entry[]): Branch[] {
  const byKey = Object.entries(Object.groupBy(entries, ({ key }) => key));
  const [special, general]: [Branch[], Branch[]] = [[], []];
  for (const [key, same = []] of byKey) {
    const usual = mostFrequent(same.map(({ answer }) => answer));
    special.push(...same.filter(({ answer }) => answer !== usual).map(toBranch));
    if (usual !== '') general.push([`* ${key}`, usual]);
  }
  return [...special, ...general];
}

function mostFrequent(texts: readonly string[]): string {
  const counted = Object.entries(Object.groupBy(texts, (text) => text));
  return counted.toSorted(([, a = []], [, b = []]) => b.length - a.length)[0]?.[0] ?? '';
}

/** Merges branches with the same answer into one line. Branches for any path come last. */
function toBranches(branches: readonly Branch[]): string {
  const isGeneral = ([pattern]: Branch): boolean => pattern.startsWith('* ');
  return [branches.filter((branch) => !isGeneral(branch)), branches.filter(isGeneral)]
    .flatMap((group) => Object.entries(Object.groupBy(group, ([, answer]) => answer)))
    .map(([answer, same = []]) => `    ${same.map(toPattern).join('|')}) answer='${answer}' ;;`)
    .join('\n');
}

function toPattern([pattern]: Branch): string {
  return pattern.startsWith('* ') ? `*'${pattern.slice(1)}'` : `'${pattern}'`;
}
