import { StringDecoder } from 'node:string_decoder';
import type { Guest } from './guest.ts';
import { GuestShell } from './shell.ts';

const MAX_LINE_CHARS = 64 * 1024;
const MAX_TYPED_AHEAD_CHARS = 64 * 1024;
/** Cursor keys and similar sequences, which this line editor ignores. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
const ESCAPE_SEQUENCE = /\u001b\[[\d;]*[A-Za-z~]/g;

export interface TerminalOutput {
  write(text: string): void;
  /** Resolves when the client has taken the output, or is gone. */
  drained(): Promise<void>;
  /** Called once, with the shell's exit status. */
  end(status: number): void;
}

/**
 * An interactive shell on a pty. It echoes input, edits the line with backspace, Ctrl-U and Ctrl-C, and ends with
 * `exit` or Ctrl-D. Input that arrives during a command waits for its end.
 */
export class GuestTerminal {
  readonly #shell: GuestShell;
  readonly #hostname: string;
  readonly #output: TerminalOutput;
  readonly #decoder = new StringDecoder('utf8');
  readonly #closed = new AbortController();
  #line = '';
  #typedAhead = '';
  #running: AbortController | undefined;
  #lastWasReturn = false;
  #inputHasEnded = false;

  constructor(
    guest: Guest,
    { image, hostname }: { image: string; hostname: string },
    output: TerminalOutput,
  ) {
    this.#hostname = hostname;
    this.#shell = new GuestShell(guest);
    this.#output = output;
    this.#write(`Welcome to ${image} (simulated by Berth) on ${hostname}\n\n${this.#prompt()}`);
  }

  type(bytes: Buffer): void {
    const text = this.#typedAhead + this.#decoder.write(bytes).replace(ESCAPE_SEQUENCE, '');
    this.#typedAhead = '';
    this.#read(text);
  }

  /** The client's input has ended: the shell ends after it has run what was typed. */
  endInput(): void {
    this.#inputHasEnded = true;
    this.#endIfIdle();
  }

  /** The client is gone: interrupts the running command and writes nothing more. */
  close(): void {
    this.#closed.abort();
    this.#running?.abort();
  }

  #read(text: string): void {
    for (let at = 0; at < text.length; at++) {
      if (this.#closed.signal.aborted) return;
      const character = text.charAt(at);
      if (this.#running === undefined) {
        this.#take(character);
      } else if (character === '\u0003') {
        this.#write('^C\n');
        this.#running.abort();
      } else {
        this.#typedAhead = (this.#typedAhead + character).slice(0, MAX_TYPED_AHEAD_CHARS);
      }
    }
  }

  #take(character: string): void {
    // A client in raw mode sends a carriage return for Enter; pasted text may contain both characters.
    const isSecondHalf = character === '\n' && this.#lastWasReturn;
    this.#lastWasReturn = character === '\r';
    if (isSecondHalf) return;
    if (character === '\r' || character === '\n') this.#enter();
    else if (character === '\u0004') this.#endOfInput();
    else if (character === '\u0003') this.#discard('^C\n');
    else if (character === '\u0015') this.#erase(this.#line.length);
    else if (character === '\u007f' || character === '\b') this.#erase(1);
    else if (character >= ' ' && this.#line.length < MAX_LINE_CHARS) {
      this.#line += character;
      this.#write(character);
    }
  }

  #erase(count: number): void {
    const erased = Math.min(count, this.#line.length);
    this.#line = this.#line.slice(0, this.#line.length - erased);
    this.#write('\b \b'.repeat(erased));
  }

  #discard(echo: string): void {
    this.#line = '';
    this.#write(`${echo}${this.#prompt()}`);
  }

  #endOfInput(): void {
    if (this.#line !== '') return;
    this.#write('logout\n');
    this.#end();
  }

  #enter(): void {
    const line = this.#line;
    this.#line = '';
    this.#write('\n');
    this.#running = new AbortController();
    const write = (text: string): void => this.#write(text);
    const streams = { stdin: async () => '', out: write, err: write, drained: () => this.#output.drained() };
    void this.#shell.run(line, streams, this.#running.signal).then(() => this.#afterCommand());
  }

  #afterCommand(): void {
    this.#running = undefined;
    if (this.#closed.signal.aborted) return;
    if (this.#shell.hasExited) {
      this.#write('logout\n');
      this.#end();
      return;
    }
    this.#write(this.#prompt());
    const text = this.#typedAhead;
    this.#typedAhead = '';
    this.#read(text);
    this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (this.#inputHasEnded && this.#running === undefined && !this.#closed.signal.aborted) this.#end();
  }

  #end(): void {
    this.#closed.abort();
    this.#output.end(this.#shell.lastStatus);
  }

  #prompt(): string {
    const directory = this.#shell.workingDirectory.replace(/^\/home\/ubuntu(?=$|\/)/, '~');
    return `${this.#shell.user}@${this.#hostname}:${directory}$ `;
  }

  #write(text: string): void {
    if (!this.#closed.signal.aborted) this.#output.write(text.replace(/\r?\n/g, '\r\n'));
  }
}
