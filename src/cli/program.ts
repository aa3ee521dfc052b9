import { Command } from 'commander';
import { Fatal, StoreUnavailable } from '../ports/errors.ts';
import { printError, printText, toPrintableLine } from '../runtime/print.ts';
import { addVerbAliases } from './verbs.ts';

/** `berth`, with its commands. A mistake on the command line is one sentence that says where the help is. */
export function createProgram(commands: readonly Command[], version: string): Command {
  // A flag after the name of a command is that command's, also where one above it has the same.
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

function explainMistakes(command: Command, name: string, outer = name): void {
  command.exitOverride();
  command.configureOutput({
    writeOut: printText,
    writeErr: printError,
    outputError: (text, write) => {
      const [told = '', ...hints] = text
        .replace(/^error: /, '')
        .trim()
        .split('\n');
      const noun = told.startsWith('too many arguments') ? nounOf(command) : undefined;
      const mistake = inHouseWords(noun === undefined ? told : `unknown command '${noun.args[0]}'`);
      const sentence = [mistake.replace(/\.$/, ''), ...hints].join(' ');
      write(`berth: ${sentence}: see \`${noun === command.parent ? outer : name} --help\`.\n`);
    },
  });
  for (const inner of command.commands) explainMistakes(inner, `${name} ${inner.name()}`, name);
}

/**
 * The command whose own command was meant by an argument too many: `berth marketplace` serves by itself and has commands,
 * and `berth orphans frob` runs the default of `berth orphans`. Undefined: it is an argument.
 */
function nounOf(command: Command): Command | undefined {
  if (command.commands.length > 0) return command;
  const { parent } = command;
  const given = parent?.args[0];
  const isNamed = given === undefined || given === command.name() || command.aliases().includes(given);
  return isNamed || given.startsWith('-') ? undefined : (parent ?? undefined);
}

/** A choice that is none, as `--status LOST: give one of ONLINE, STOPPED`. */
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

/** A command whose code is loaded only when it is called: `--help` needs its name and its description alone. */
export interface LazyCommand {
  name: string;
  description: string;
  load: () => Promise<Command>;
}

/** The commands, of which only those that `isCalled` names are loaded. */
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
/** The suite and the sandbox are run by who has a program of their own, and a Node of their own. */
const OLDEST_FOR_CLIENTS = [22, 14] as const;

/**
 * What is wrong with a Node of this version, such as "20.19.0", for this command; or null. An older one would end
 * without a word.
 */
export function sentenceOfOldNode(version: string, command?: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = ['conformance', 'sandbox'].includes(command ?? '')
    ? OLDEST_FOR_CLIENTS
    : OLDEST;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null;
  return `Berth needs Node ${oldestMajor}.${oldestMinor} or later, and this is ${version}: put a newer one first in PATH.`;
}

/** An `ApiError` that is no fault of the server's; told by its name, since the suite begins here too and loads nothing of a server. */
function isRefusal(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'ApiError' || !('status' in error)) return false;
  return typeof error.status === 'number' && error.status < 500;
}

/** Prints what ended a command: a sentence on one line, the findings of a configuration a line each, or a fault with its stack. */
export function printFailure(error: unknown): void {
  const sentence = sentenceOf(error);
  if (sentence === undefined) {
    const fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
    printError(`berth: a fault of the program: ${fault.replaceAll('\n', '\n  ')}\n`);
  } else printError(`berth: ${hasLines(error) ? sentence : toPrintableLine(sentence)}\n`);
}

/** A `ConfigError`: each of its findings is one line already. */
function hasLines(error: unknown): boolean {
  return error instanceof Error && 'findings' in error;
}

/** What the person at the terminal reads of an error; undefined: it is a fault of the program. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof StoreUnavailable)
    return `The database cannot be used now (${error.message.replace(/^\w+: /, '')}): mend that and try again.`;
  if (isRefusal(error)) return error.message;
  return error instanceof Fatal ? error.message : undefined;
}
