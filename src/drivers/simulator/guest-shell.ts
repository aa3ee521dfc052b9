import { posix } from 'node:path';
import { GUEST_USER, type Guest, type Streams } from './guest.ts';
import { guestCommands } from './guest-commands.ts';
import { FileError } from './guest-files.ts';
import {
  type Pipeline,
  parseCommandLine,
  type Redirection,
  type SimpleCommand,
  SyntaxProblem,
  type Word,
} from './guest-syntax.ts';

const MAX_COMMAND_LINE_BYTES = 64 * 1024;
const MAX_NESTING = 16;
/** What one command line writes at most; the rest is lost. */
const MAX_OUTPUT_CHARS = 8 * 1024 * 1024;

/** One shell: a working directory, variables and the status of the last command. */
export class GuestShell {
  readonly guest: Guest;
  readonly user: string;
  readonly variables: Map<string, string>;
  workingDirectory: string;
  lastStatus = 0;
  /** Set by `exit`. */
  hasExited = false;

  readonly #depth: number;

  constructor(guest: Guest, user: string = GUEST_USER, depth = 0) {
    this.guest = guest;
    this.#depth = depth;
    this.user = user;
    this.workingDirectory = user === 'root' ? '/root' : `/home/${user}`;
    this.variables = new Map([
      ['HOME', this.workingDirectory],
      ['USER', user],
      ['SHELL', '/bin/bash'],
      ['PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    ]);
  }

  /** Runs a command line; its exit status. Ends early, with 130, when `signal` aborts. Never rejects. */
  async run(text: string, streams: Streams, signal: AbortSignal): Promise<number> {
    const bounded = boundOutput(streams);
    try {
      if (Buffer.byteLength(text) > MAX_COMMAND_LINE_BYTES) throw new SyntaxProblem('command line too long');
      for (const pipeline of parseCommandLine(text)) {
        if (signal.aborted) this.lastStatus = 130;
        if (signal.aborted || this.hasExited) break;
        if (pipeline.when === 'succeeded' && this.lastStatus !== 0) continue;
        if (pipeline.when === 'failed' && this.lastStatus === 0) continue;
        this.lastStatus = await this.#runPipeline(pipeline, bounded, signal);
      }
    } catch (error) {
      bounded.err(`bash: ${error instanceof SyntaxProblem ? error.message : 'cannot execute'}\n`);
      this.lastStatus = 2;
    }
    return this.lastStatus;
  }

  /** Runs a command line in a shell of its own, as `sh -c` does. */
  async runNested(text: string, user: string, streams: Streams, signal: AbortSignal): Promise<number> {
    if (this.#depth >= MAX_NESTING) return 126;
    const nested = new GuestShell(this.guest, user, this.#depth + 1);
    nested.workingDirectory = this.workingDirectory;
    return nested.run(text, streams, signal);
  }

  /** `path` as an absolute path of the guest. */
  resolve(path: string): string {
    return posix.resolve(this.workingDirectory, path).replace(/^\/\/+/, '/');
  }

  async #runPipeline(pipeline: Pipeline, streams: Streams, signal: AbortSignal): Promise<number> {
    let input = streams.stdin;
    let status = 0;
    for (const [index, command] of pipeline.commands.entries()) {
      const isLast = index === pipeline.commands.length - 1;
      const piped: string[] = [];
      const out = isLast ? streams.out : (text: string) => void piped.push(text);
      status = await this.#runCommand(command, { stdin: input, out, err: streams.err }, signal);
      input = async () => piped.join('');
    }
    return status;
  }

  async #runCommand(command: SimpleCommand, streams: Streams, signal: AbortSignal): Promise<number> {
    const argv = command.words.map((word) => this.#expand(word));
    const user = this.#stripSudo(argv);
    const redirected = new RedirectedStreams(streams);
    let status = 0;
    try {
      for (const redirection of command.redirections) this.#redirect(redirection, redirected);
      status = await this.#dispatch(argv, user, redirected, signal);
      // The shell opens the file, so `sudo echo x > file` writes as the shell's own user.
      for (const [path, text] of redirected.files) this.#flush(path, text);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      streams.err(`bash: ${error.message}\n`);
      status = 1;
    }
    return status;
  }

  async #dispatch(argv: string[], user: string, streams: Streams, signal: AbortSignal): Promise<number> {
    while (/^[A-Za-z_]\w*=/.test(argv[0] ?? '')) {
      const [name = '', ...value] = (argv.shift() ?? '').split('=');
      this.variables.set(name, value.join('='));
    }
    const [name, ...args] = argv;
    if (name === undefined) return 0;
    const command = Object.hasOwn(guestCommands, posix.basename(name))
      ? guestCommands[posix.basename(name)]
      : undefined;
    const status = await command?.({
      name: posix.basename(name),
      args,
      user,
      shell: this,
      guest: this.guest,
      signal,
      ...streamsOf(streams),
    });
    if (status !== undefined) return status;
    streams.err(
      user === this.user ? `bash: ${name}: command not found\n` : `sudo: ${name}: command not found\n`,
    );
    return user === this.user ? 127 : 1;
  }

  /** Takes `sudo` and its options off; the user that the command runs as. */
  #stripSudo(argv: string[]): string {
    let user = this.user;
    while (argv[0] === 'sudo' && argv.length > 1) {
      argv.shift();
      user = 'root';
      for (let option = argv[0]; option?.startsWith('-'); option = argv[0]) {
        argv.shift();
        if (option === '-u') user = argv.shift() ?? 'root';
        if (option === '--') break;
      }
    }
    return user;
  }

  #redirect({ operator, target }: Redirection, streams: RedirectedStreams): void {
    const { out, err } = streams;
    if (operator === '2>&1') streams.err = out;
    if (operator === '>&2') streams.out = err;
    if (target.length === 0) return;
    const name = this.#expand(target);
    const path = this.resolve(name);
    if (operator === '<') {
      const content = this.#named(name, () => this.guest.files.read(path, this.user));
      streams.stdin = async () => content;
      return;
    }
    const before =
      operator.endsWith('>>') && this.guest.files.stat(path) !== undefined
        ? this.#named(name, () => this.guest.files.read(path, this.user))
        : '';
    if (path !== '/dev/null') this.#named(name, () => this.guest.files.write(path, before, this.user));
    const write = streams.toFile(path, before);
    if (operator === '2>' || operator === '2>>') streams.err = write;
    else streams.out = write;
    if (operator === '&>') streams.err = write;
  }

  #flush(path: string, text: string): void {
    if (path !== '/dev/null') this.#named(path, () => this.guest.files.write(path, text, this.user));
  }

  /** A failure of `work` names the file. */
  #named<T>(name: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw error instanceof FileError ? new FileError(`${name}: ${error.message}`) : error;
    }
  }

  #expand(word: Word): string {
    const text = word
      .map((part) =>
        part.expands ? part.text.replace(/\$(?:(\?)|(\w+)|\{(\w+)\})/g, this.#variable) : part.text,
      )
      .join('');
    const [first] = word;
    return first?.expands ? text.replace(/^~(?=$|\/)/, this.variables.get('HOME') ?? '') : text;
  }

  readonly #variable = (
    _whole: string,
    status: string | undefined,
    plain: string | undefined,
    braced: string | undefined,
  ): string =>
    status === undefined ? (this.variables.get(plain ?? braced ?? '') ?? '') : String(this.lastStatus);
}

class RedirectedStreams implements Streams {
  stdin: Streams['stdin'];
  out: Streams['out'];
  err: Streams['err'];
  readonly files = new Map<string, string>();

  constructor(streams: Streams) {
    ({ stdin: this.stdin, out: this.out, err: this.err } = streams);
  }

  toFile(path: string, before: string): (text: string) => void {
    this.files.set(path, before);
    return (text) => void this.files.set(path, (this.files.get(path) ?? '') + text);
  }
}

/** The streams as they are now, free of `this`. */
function streamsOf(streams: Streams): Streams {
  return { stdin: () => streams.stdin(), out: (text) => streams.out(text), err: (text) => streams.err(text) };
}

function boundOutput(streams: Streams): Streams {
  let left = MAX_OUTPUT_CHARS;
  const bound = (write: (text: string) => void) => (text: string) => {
    const fits = text.slice(0, left);
    left -= fits.length;
    if (fits !== '') write(fits);
  };
  return {
    stdin: streams.stdin,
    out: bound((text) => streams.out(text)),
    err: bound((text) => streams.err(text)),
  };
}
