import { createInterface } from 'node:readline';
import { Readable, type Writable } from 'node:stream';
import type { ServerChannel, Session } from 'ssh2';
import { setImmediate } from '../../../ports/timers.ts';
import type { Streams } from './commands.ts';
import { GUEST_USER, type Guest } from './guest.ts';
import { GuestShell } from './shell.ts';

const MAX_INPUT_BYTES = 256 * 1024;
/** The longest line that a shell reads. */
const MAX_LINE_BYTES = 4_096;
const CTRL_C = 3;
const CTRL_D = 4;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * One SSH session in the guest: a command, or a shell with or without a pty. Subsystems, forwarding and agents have
 * no listener, so they are refused. `gone` aborts when the connection is closed or the guest goes down.
 */
export function serveGuestSession(session: Session, guest: Guest, gone: AbortSignal): void {
  let hasTerminal = false;
  const interrupt = new AbortController();
  const ended = AbortSignal.any([gone, interrupt.signal]);
  session.on('pty', (accept) => {
    hasTerminal = true;
    // ssh2 passes no function if the client wants no reply.
    accept?.();
  });
  session.on('window-change', (accept) => void accept?.());
  session.on('env', (accept) => void accept?.());
  session.on('signal', () => interrupt.abort());
  session.once('close', () => interrupt.abort());
  session.once('exec', (accept, _reject, { command }) => {
    const channel = open(accept());
    const input = readInput(channel, hasTerminal, interrupt);
    const streams = { ...streamsOf(channel, hasTerminal), stdin: () => input };
    const running = new GuestShell(guest).run(command, streams, ended);
    void running.then((status) => finish(channel, status)).catch(() => channel.close());
  });
  session.once('shell', (accept) => {
    const channel = open(accept());
    void talk(channel, guest, hasTerminal, ended).catch(() => channel.close());
  });
}

/** Prepares a channel for a client that may disconnect between any two writes. */
function open(channel: ServerChannel): ServerChannel {
  channel.on('error', () => {});
  channel.stderr.on('error', () => {});
  return channel;
}

function finish(channel: ServerChannel, status: number): void {
  channel.exit(status);
  channel.end();
}

/** The streams of a channel without input. A pty has a single output and needs carriage returns. */
function streamsOf(channel: ServerChannel, hasTerminal: boolean): Streams {
  const writeTo = (stream: Writable) => (text: string) => {
    if (channel.writable) stream.write(hasTerminal ? text.replace(/\r?\n/g, '\r\n') : text);
  };
  return {
    stdin: async () => '',
    out: writeTo(channel),
    err: writeTo(hasTerminal ? channel : channel.stderr),
    drained: async () => {
      await drained(channel);
      await drained(channel.stderr);
    },
  };
}

/** Resolves when the client has taken the output, or is gone. */
function drained(stream: Writable): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed || !stream.writable) return Promise.resolve();
  return new Promise((resolve) => {
    const events = ['drain', 'close', 'finish', 'error'];
    const settle = (): void => {
      for (const event of events) stream.off(event, settle);
      resolve();
    };
    for (const event of events) stream.on(event, settle);
  });
}

/** Reads a command's input until it ends (on a pty: Ctrl-D) or the client is gone. */
function readInput(
  channel: ServerChannel,
  hasTerminal: boolean,
  interrupt: AbortController,
): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (): void => resolve(Buffer.concat(chunks).toString());
    channel.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_INPUT_BYTES) channel.close();
      if (hasTerminal && chunk.includes(CTRL_C)) interrupt.abort();
      if (hasTerminal && chunk.includes(CTRL_D)) end();
    });
    channel.once('end', end);
    interrupt.signal.addEventListener('abort', end, { once: true });
  });
}

/** An interactive shell: on a pty with a prompt and line editing, else it runs its input line by line. */
async function talk(
  channel: ServerChannel,
  guest: Guest,
  hasTerminal: boolean,
  ended: AbortSignal,
): Promise<void> {
  const shell = new GuestShell(guest);
  const streams = streamsOf(channel, hasTerminal);
  const { image, hostname } = guest.facts().spec;
  const input = Readable.from(keysOf(channel)).on('error', () => lines.close());
  const lines = createInterface({ input, output: channel, terminal: hasTerminal });
  const prompt = (): void => {
    const directory = shell.workingDirectory.replace(/^\/home\/ubuntu(?=$|\/)/, '~');
    const text = `${GUEST_USER}@${hostname}:${directory}$ `;
    // For the line editor, which repeats it. It writes nothing once the input has ended.
    lines.setPrompt(text);
    if (hasTerminal) streams.out(text);
  };
  let running: AbortController | undefined;
  lines.on('SIGINT', () => {
    streams.out('^C\n');
    if (running !== undefined) return running.abort();
    lines.write(null, { ctrl: true, name: 'u' });
    prompt();
  });
  // A client that is gone is an error of the input, which the editor repeats, also once its loop has ended.
  lines.on('error', () => {});
  // Without a listener, Node's line editor suspends this whole process at Ctrl-Z.
  lines.on('SIGTSTP', () => {});
  if (hasTerminal) streams.out(`Welcome to ${image} (simulated by Berth) on ${hostname}\n\n`);
  prompt();
  for await (const line of lines) {
    running = new AbortController();
    await shell.run(line, streams, AbortSignal.any([ended, running.signal]));
    running = undefined;
    if (shell.hasExited || ended.aborted) break;
    prompt();
  }
  if (hasTerminal) streams.out('logout\n');
  finish(channel, shell.lastStatus);
}

/** The client's input, byte by byte: a key typed ahead finds the command before it begun. Ends at a line too long. */
async function* keysOf(channel: ServerChannel): AsyncGenerator<Buffer> {
  let lineBytes = 0;
  for await (const chunk of channel as AsyncIterable<Buffer>)
    for (const byte of chunk) {
      lineBytes = byte === CARRIAGE_RETURN || byte === LINE_FEED ? 0 : lineBytes + 1;
      if (lineBytes > MAX_LINE_BYTES) return;
      yield Buffer.of(byte);
      await new Promise((resolve) => void setImmediate(resolve));
      // A client that types without reading its echo is not read further.
      await drained(channel);
    }
}
