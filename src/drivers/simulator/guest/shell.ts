import { posix } from 'node:path';
import { setImmediate } from '../../../ports/timers.ts';
import { commands, type Streams } from './commands.ts';
import { FileError, GUEST_USER, type Guest } from './guest.ts';

const MAX_LINE_CHARS = 64 * 1024;
const MAX_WORDS = 256;
/** Output limit of one line, and of each command that writes to a file. Beyond it the line ends. */
const MAX_OUTPUT_CHARS = 512 * 1024;

/** A line or command that the guest does not run. */
class Refusal extends Error {
  override readonly name = 'Refusal';
}

interface ParsedCommand {
  words: string[];
  /** The file that gets its output. */
  output: { path: string; append: boolean } | undefined;
  /** After `&&`: runs only if the previous command succeeded. */
  afterSuccess: boolean;
}

/** Runs lines of a fixed table of commands, with a working directory and the status of the last command. */
export class GuestShell {
  readonly guest: Guest;
  readonly #user: string;
  workingDirectory: string;
  lastStatus = 0;
  /** Set by `exit`. */
  hasExited = false;

  constructor(guest: Guest, user: string = GUEST_USER, workingDirectory = `/home/${user}`) {
    this.guest = guest;
    this.#user = user;
    this.workingDirectory = workingDirectory;
  }

  /** Runs a line and returns the last exit status, or 130 when `signal` aborts. Never rejects. */
  async run(line: string, streams: Streams, signal: AbortSignal): Promise<number> {
    const bounded = { ...streams, out: bound(streams.out) };
    try {
      for (const command of parse(line)) {
        await streams.drained();
        // Other sessions and the platform run between two commands.
        await new Promise((resolve) => void setImmediate(resolve));
        if (signal.aborted) this.lastStatus = 130;
        if (signal.aborted || this.hasExited) break;
        if (command.afterSuccess && this.lastStatus !== 0) continue;
        this.lastStatus = await this.#runCommand(command, bounded, signal);
      }
    } catch (error) {
      this.lastStatus = error instanceof Refusal ? 2 : 1;
      const isTold = error instanceof Refusal || error instanceof FileError;
      streams.err(`bash: ${isTold ? error.message : 'cannot execute'}\n`);
    }
    return this.lastStatus;
  }

  resolve(path: string): string {
    return posix.resolve(this.workingDirectory, path).replace(/^\/\/+/, '/');
  }

  async #runCommand(
    { words, output }: ParsedCommand,
    streams: Streams,
    signal: AbortSignal,
  ): Promise<number> {
    if (output === undefined) return this.#dispatch(words, streams, signal);
    const path = this.resolve(output.path);
    const { files } = this.guest;
    const user = this.#user;
    let content = output.append ? (files.find(path)?.content ?? '') : '';
    const out = bound((text) => {
      content += text;
    });
    const status = await this.#dispatch(words, { ...streams, out }, signal);
    if (path !== '/dev/null')
      files.write(path, { ...(files.find(path) ?? { mode: 0o644, user, group: user }), content });
    return status;
  }

  async #dispatch(
    words: readonly string[],
    { stdin, out, err }: Streams,
    signal: AbortSignal,
  ): Promise<number> {
    const isSudo = words[0] === 'sudo';
    const [path = 'true', ...args] = isSudo ? words.slice(1) : words;
    const name = posix.basename(path);
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command === undefined) {
      err(`${isSudo ? 'sudo' : 'bash'}: ${path}: command not found\n`);
      return isSudo ? 1 : 127;
    }
    const { guest } = this;
    const user = isSudo ? 'root' : this.#user;
    return (await command({ name, args, user, shell: this, guest, stdin, out, err, signal })) ?? 0;
  }
}

/** @throws {Refusal} from the returned function, once it was given too much */
function bound(write: (text: string) => void): (text: string) => void {
  let left = MAX_OUTPUT_CHARS;
  return (text) => {
    left -= text.length;
    if (left < 0)
      throw new Refusal(`a simulated guest writes at most ${MAX_OUTPUT_CHARS} characters at once`);
    write(text);
  };
}

/**
 * Parses commands separated by `;`, `&&` or line ends, with quotes, `>` and `>>`. Expands nothing: `$`, `*` and `~` are
 * literal. Time and memory are linear in the length of the line.
 *
 * @throws {Refusal}
 */
function parse(line: string): ParsedCommand[] {
  if (line.length > MAX_LINE_CHARS) throw new Refusal('command line too long');
  const parsed: ParsedCommand[] = [];
  let command: ParsedCommand = { words: [], output: undefined, afterSuccess: false };
  for (const { word, redirect, file, operator } of tokensOf(line)) {
    if (word !== undefined) command.words.push(unquote(word));
    if (file !== undefined) command.output = { path: unquote(file), append: redirect === '>>' };
    if (operator === undefined) continue;
    const isEmpty = command.words.length === 0 && command.output === undefined;
    if (isEmpty && (operator === '&&' || command.afterSuccess))
      throw new Refusal('syntax error: a command is missing at `&&`');
    if (command.words.length > MAX_WORDS) throw new Refusal(`more than ${MAX_WORDS} words in a command`);
    if (!isEmpty) parsed.push(command);
    command = { words: [], output: undefined, afterSuccess: operator === '&&' };
  }
  return parsed;
}

const WORD = /(?:'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]|[^\s;|&<>'"\\()`])+/.source;

function* tokensOf(line: string): Generator<Record<string, string | undefined>> {
  // Sticky, so that each part is matched where the last one ended, without copying.
  const part = new RegExp(
    `[ \\t\\r]+|(?<operator>&&|[;\\n])|(?<redirect>>>?)[ \\t]*(?<file>${WORD})|(?<word>${WORD})`,
    'y',
  );
  while (part.lastIndex < line.length) {
    const at = part.lastIndex;
    const match = part.exec(line);
    if (match === null)
      throw new Refusal(
        `cannot read ${JSON.stringify(line.slice(at, at + 20))}: the guest takes plain commands, quotes, ";", "&&", ">" and ">>"`,
      );
    yield match.groups ?? {};
  }
  yield { operator: '\n' };
}

/** Inside double quotes a backslash escapes only `"`, `\`, `$` and a backquote. */
function unquote(word: string): string {
  return word.replace(
    /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])/g,
    (_, single: string | undefined, double: string | undefined, escaped: string | undefined) =>
      single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
  );
}
