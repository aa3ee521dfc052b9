import { posix } from 'node:path';
import { guestCommands } from './commands.ts';
import { type CommandShell, FileError, GUEST_USER, type Guest, type Streams } from './guest.ts';
import { type GuestCommandLine, parseCommandLine, SyntaxProblem } from './syntax.ts';

const MAX_LINE_CHARS = 64 * 1024;
const MAX_COMMANDS = 256;
/** Output limit of one line; the line ends there. */
const MAX_OUTPUT_CHARS = 512 * 1024;

class TooMuchOutput extends Error {
  override readonly name = 'TooMuchOutput';
}

/**
 * A shell with a working directory and the status of the last command. It runs a fixed table of commands, not Linux.
 */
export class GuestShell implements CommandShell {
  readonly guest: Guest;
  readonly user: string;
  workingDirectory: string;
  lastStatus = 0;
  /** Set by `exit`. */
  hasExited = false;

  constructor(guest: Guest, user: string = GUEST_USER) {
    this.guest = guest;
    this.user = user;
    this.workingDirectory = user === 'root' ? '/root' : `/home/${user}`;
  }

  /**
   * Runs the commands of a text and returns the last exit status. Limits length, number of commands and output. Ends
   * with 130 when `signal` aborts. Never rejects.
   */
  async run(text: string, streams: Streams, signal: AbortSignal): Promise<number> {
    const bounded = boundOutput(streams);
    try {
      for (const command of commandsOf(text)) {
        await streams.drained();
        if (signal.aborted) this.lastStatus = 130;
        if (signal.aborted || this.hasExited) break;
        if (command.afterSuccess && this.lastStatus !== 0) continue;
        this.lastStatus = await this.#runCommand(command, bounded, signal);
      }
    } catch (error) {
      streams.err(
        `bash: ${error instanceof SyntaxProblem || error instanceof TooMuchOutput ? error.message : 'cannot execute'}\n`,
      );
      this.lastStatus = error instanceof SyntaxProblem ? 2 : 1;
    }
    return this.lastStatus;
  }

  resolve(path: string): string {
    return posix.resolve(this.workingDirectory, path).replace(/^\/\/+/, '/');
  }

  async #runCommand(
    { argv, output }: GuestCommandLine,
    streams: Streams,
    signal: AbortSignal,
  ): Promise<number> {
    if (output === undefined) return this.#dispatch(argv, streams, signal);
    const path = this.resolve(output.path);
    const isKept = path !== '/dev/null';
    const { user } = this;
    const written: string[] = [];
    try {
      // The shell opens the file before the command runs, as its own user, also for `sudo echo x > file`.
      if (isKept) await this.guest.files.write(path, '', { user, append: output.append });
      const status = await this.#dispatch(
        argv,
        { ...streams, out: (text) => void written.push(text) },
        signal,
      );
      if (isKept) await this.guest.files.write(path, written.join(''), { user, append: output.append });
      return status;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      streams.err(`bash: ${output.path}: ${error.message}\n`);
      return 1;
    }
  }

  async #dispatch(argv: readonly string[], streams: Streams, signal: AbortSignal): Promise<number> {
    const isSudo = argv[0] === 'sudo' && argv.length > 1;
    const [path, ...args] = isSudo ? argv.slice(1) : argv;
    if (path === undefined) return 0;
    const name = posix.basename(path);
    const command = Object.hasOwn(guestCommands, name) ? guestCommands[name] : undefined;
    const user = isSudo ? 'root' : this.user;
    const status = await command?.({ name, args, user, shell: this, guest: this.guest, signal, ...streams });
    if (status !== undefined) return status;
    streams.err(`${isSudo ? 'sudo' : 'bash'}: ${path}: command not found\n`);
    return isSudo ? 1 : 127;
  }
}

/** @throws {SyntaxProblem} */
function commandsOf(text: string): GuestCommandLine[] {
  if (text.length > MAX_LINE_CHARS) throw new SyntaxProblem('command line too long');
  const commands = parseCommandLine(text);
  if (commands.length <= MAX_COMMANDS) return commands;
  throw new SyntaxProblem(`a simulated guest runs at most ${MAX_COMMANDS} commands at once`);
}

/**
 * Limits the output of the streams, including output that goes to a file. Beyond it a write throws
 * {@link TooMuchOutput}.
 */
function boundOutput({ stdin, out, err, drained }: Streams): Streams {
  let left = MAX_OUTPUT_CHARS;
  const bound = (write: (text: string) => void) => (text: string) => {
    left -= text.length;
    if (left < 0)
      throw new TooMuchOutput(`a simulated guest writes at most ${MAX_OUTPUT_CHARS} characters at once`);
    write(text);
  };
  return { stdin, out: bound(out), err: bound(err), drained };
}
