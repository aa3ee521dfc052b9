import type { Writable } from 'node:stream';
import type { ServerChannel, Session } from 'ssh2';
import { FileError, type Guest, type Streams } from './guest.ts';
import { GuestShell } from './shell.ts';
import { GuestTerminal } from './terminal.ts';

const MAX_INPUT_BYTES = 256 * 1024;

/**
 * One SSH session in the guest: a command, or a shell with or without a pty. Subsystems, forwarding and agents have
 * no listener, so they are refused. `signal` aborts when the connection is closed.
 */
export function serveGuestSession(session: Session, guest: Guest, signal: AbortSignal): void {
  let hasTerminal = false;
  const interrupt = new AbortController();
  const ended = AbortSignal.any([signal, interrupt.signal]);
  session.on('pty', (accept) => {
    hasTerminal = true;
    // ssh2 passes no function if the client wants no reply.
    accept?.();
  });
  session.on('window-change', (accept) => void accept?.());
  session.on('env', (accept) => void accept?.());
  session.on('signal', () => interrupt.abort());
  session.once('close', () => interrupt.abort());
  session.once('exec', (accept, _reject, info) => {
    const channel = open(accept());
    void runOnce(channel, info.command, guest, hasTerminal, ended, interrupt).catch(() => channel.close());
  });
  session.once('shell', (accept) => {
    const channel = open(accept());
    if (hasTerminal) void runTerminal(channel, guest, ended).catch(() => channel.close());
    else void runLines(channel, guest, ended).catch(() => channel.close());
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

/** The streams of a channel. A pty has a single output and needs carriage returns. */
function streamsOf(channel: ServerChannel, hasTerminal: boolean, input: Promise<string>): Streams {
  const write = (text: string): void => {
    if (channel.writable) channel.write(hasTerminal ? text.replace(/\r?\n/g, '\r\n') : text);
  };
  const writeError = (text: string): void => {
    if (channel.writable) channel.stderr.write(text);
  };
  return {
    stdin: () => input,
    out: write,
    err: hasTerminal ? write : writeError,
    drained: async () => {
      await drained(channel);
      await drained(channel.stderr);
    },
  };
}

/**
 * Resolves when the client has taken the output, or is gone. Limits the output buffered for a client that does not
 * read.
 */
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

async function runOnce(
  channel: ServerChannel,
  command: string,
  guest: Guest,
  hasTerminal: boolean,
  ended: AbortSignal,
  interrupt: AbortController,
): Promise<void> {
  const input = readInput(channel, hasTerminal, ended, () => interrupt.abort());
  const status = await new GuestShell(guest).run(command, streamsOf(channel, hasTerminal, input), ended);
  finish(channel, status);
}

/** Reads the client's input until it ends (on a pty: Ctrl-D) or the client is gone. */
function readInput(
  channel: ServerChannel,
  hasTerminal: boolean,
  ended: AbortSignal,
  interrupt: () => void,
): Promise<string> {
  const input = new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const finishInput = (): void => resolve(Buffer.concat(chunks).toString());
    channel.on('data', (chunk: Buffer) => {
      if (hasTerminal && chunk.includes(3)) interrupt();
      bytes += chunk.length;
      if (bytes > MAX_INPUT_BYTES)
        reject(new FileError('the input is larger than the simulated guest takes'));
      else chunks.push(chunk);
      if (hasTerminal && chunk.includes(4)) finishInput();
    });
    channel.once('end', finishInput);
    ended.addEventListener('abort', finishInput, { once: true });
  });
  // Most commands never read their input, so a rejection for too much input may have no handler.
  input.catch(() => {});
  return input;
}

async function runTerminal(channel: ServerChannel, guest: Guest, ended: AbortSignal): Promise<void> {
  const { spec } = await guest.facts();
  const { out: write, drained } = streamsOf(channel, true, Promise.resolve(''));
  const terminal = new GuestTerminal(guest, spec, {
    write,
    drained,
    end: (status) => finish(channel, status),
  });
  channel.on('data', (chunk: Buffer) => {
    terminal.type(chunk);
    // Pauses a client that types without reading its echo.
    if (!channel.writableNeedDrain) return;
    channel.pause();
    void drained().then(() => channel.resume());
  });
  channel.once('end', () => terminal.endInput());
  ended.addEventListener('abort', () => terminal.close(), { once: true });
  if (ended.aborted) terminal.close();
}

/** Runs a shell without a pty: executes its input line by line. */
async function runLines(channel: ServerChannel, guest: Guest, ended: AbortSignal): Promise<void> {
  const shell = new GuestShell(guest);
  const script = await readInput(channel, false, ended, () => {});
  await shell.run(script, streamsOf(channel, false, Promise.resolve('')), ended);
  finish(channel, shell.lastStatus);
}
