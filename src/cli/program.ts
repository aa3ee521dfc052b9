import { Command } from 'commander';
import { Fatal, StoreUnavailable } from '../ports/errors.ts';
import { printError, printText, toPrintableLine } from '../runtime/print.ts';
import { didYouMean } from './similar.ts';

/** Creates the program. It answers a mistake on the command line with one sentence that points to the help. */
export function createProgram(commands: readonly Command[], version: string): Command {
  // A flag after a command's name belongs to that command, even if a parent has the same flag.
  const program = new Command('berth')
    .description('The reference provider orchestrator, and a marketplace on top of provider orchestrators')
    .version(version, '-V, --version', 'print the version')
    .enablePositionalOptions();
  for (const command of commands) {
    program.addCommand(command);
    addVerbAliases(command);
  }
  explainMistakes(program, 'berth');
  return program;
}

/** Aliases of verbs, which are the same for every noun. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  ls: ['list'],
  show: ['get'],
  create: ['add'],
  rm: ['delete', 'remove', 'destroy'],
  'top-up': ['add'],
};

/** Gives each verb below a noun its aliases. */
function addVerbAliases(noun: Command): void {
  for (const command of noun.commands) {
    command.aliases(ALIASES[command.name()] ?? []);
    addVerbAliases(command);
  }
}

function explainMistakes(command: Command, name: string, outer = name): void {
  command.exitOverride();
  command.configureOutput({
    writeOut: printText,
    writeErr: printError,
    outputError: (text, write) => {
      const [message = '', ...hints] = text
        .replace(/^error: /, '')
        .trim()
        .split('\n');
      const noun = message.startsWith('too many arguments') ? nounOf(command) : undefined;
      const word = toPrintableLine(noun?.args[0] ?? '');
      const mistake = noun === undefined ? inHouseWords(message) : `unknown command '${word}'`;
      const hint = noun === undefined ? hintOfValue(mistake) : didYouMean(word, verbsOf(noun));
      const sentence = [mistake.replace(/\.$/, ''), ...hints, hint].filter(Boolean).join(' ');
      write(`berth: ${sentence}: see \`${noun === command.parent ? outer : name} --help\`.\n`);
    },
  });
  for (const inner of command.commands) explainMistakes(inner, `${name} ${inner.name()}`, name);
}

/**
 * Returns the command that was called with a mistyped subcommand, also one that runs by itself, such as `berth
 * marketplace`. Undefined for an ordinary argument.
 */
function nounOf(command: Command): Command | undefined {
  if (command.commands.length > 0) return command;
  const { parent } = command;
  const given = parent?.args[0];
  const isNamed = given === undefined || given === command.name() || command.aliases().includes(given);
  return isNamed || given.startsWith('-') ? undefined : (parent ?? undefined);
}

function verbsOf(noun: Command): string[] {
  return noun.commands.map((command) => command.name());
}

/** The hint for an invalid choice, in the words of {@link inHouseWords}. */
function hintOfValue(mistake: string): string {
  const [, value, choices] = /^\S+ (\S+): give one of (.*?)\.?$/.exec(mistake) ?? [];
  return value === undefined || choices === undefined ? '' : didYouMean(value, choices.split(', '));
}

/** Words an invalid choice as `--status LOST: give one of ONLINE, STOPPED`. */
function inHouseWords(text: string): string {
  return text
    .replace(
      /^option '(?:-\w, )?(--[\w-]+)[^']*' argument '([\s\S]*)' is invalid\. Allowed choices are /,
      '$1 $2: give one of ',
    )
    .replace(
      /^command-argument value '([\s\S]*)' is invalid for argument '(\w+)'\. Allowed choices are /,
      '<$2> $1: give one of ',
    );
}

/** A command whose code is loaded only when it is called. `--help` needs only its name and its description. */
export interface LazyCommand {
  name: string;
  description: string;
  load: () => Promise<Command>;
}

/** Commands by name: a description, and what loads the command unless all are loaded alike. */
export type LazyCommands = Readonly<
  Record<string, readonly [description: string, load?: LazyCommand['load']]>
>;

/** `loadByName` loads those that have nothing of their own. */
export function toLazy(
  commands: LazyCommands,
  loadByName: (name: string) => Promise<Command>,
): LazyCommand[] {
  return Object.entries(commands).map(([name, [description, load = () => loadByName(name)]]) => ({
    name,
    description,
    load,
  }));
}

/** Loads the commands that `isCalled` accepts. */
export async function loadCommands(
  commands: readonly LazyCommand[],
  isCalled: (name: string) => boolean,
): Promise<Command[]> {
  return Promise.all(
    commands.map(async ({ name, description, load }) =>
      (isCalled(name) ? await load() : new Command(name)).description(description),
    ),
  );
}

const OLDEST = [24, 2] as const;
/**
 * Oldest Node for the suite and the sandbox. Their users run them within their own projects, which may use an older
 * Node.
 */
const OLDEST_FOR_CLIENTS = [22, 14] as const;

/** Returns null if Node is new enough. An older Node would end without a message. */
export function sentenceOfOldNode(version: string, command?: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = ['conformance', 'sandbox'].includes(command ?? '')
    ? OLDEST_FOR_CLIENTS
    : OLDEST;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return `Berth needs Node ${oldestMajor}.${oldestMinor} or later, and this is ${version}: put a newer one first in PATH.`;
}

/** Checks the error by name: the suite also starts here, and must not load server code. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'ApiError' || !('status' in error)) return false;
  return typeof error.status === 'number' && error.status < 500;
}

/** Prints an expected error as one sentence, a configuration's findings line by line, and a bug with its stack. */
export function printFailure(error: unknown): void {
  const sentence = sentenceOf(error);
  if (sentence === undefined) {
    const fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
    printError(`berth: internal error: ${fault.replaceAll('\n', '\n  ')}\n`);
  } else printError(`berth: ${hasLines(error) ? sentence : toPrintableLine(sentence)}\n`);
}

/** Whether it is a `ConfigError`: each of its findings is already one line. */
function hasLines(error: unknown): boolean {
  return error instanceof Error && 'findings' in error;
}

/** Returns the message of an expected error, or undefined for a bug. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof StoreUnavailable)
    return `The database is unavailable (${error.message.replace(/^\w+: /, '')}): fix this and try again.`;
  if (isRefusal(error)) return error.message;
  return error instanceof Fatal ? error.message : undefined;
}
