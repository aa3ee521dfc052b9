import type { ServerChannel, Session } from 'ssh2';
import type { Guest, Streams } from './guest.ts';
import { FileError } from './guest-files.ts';
import { GuestShell } from './guest-shell.ts';
import { GuestTerminal } from './guest-terminal.ts';

const MAX_INPUT_BYTES = 1024 * 1024;

/**
 * One SSH session in the guest: a command, or a shell with or without a pty. Subsystems, forwarding
 * and agents are refused, by not being listened for. `signal` aborts when the connection is gone.
 */
export function serveGuestSession(session: Session, guest: Guest, signal: AbortSignal): void {
  let hasTerminal = false;
  const interrupt = new AbortController();
  const ended = AbortSignal.any([signal, interrupt.signal]);
  session.on('pty', (accept) => {
    hasTerminal = true;
    // ssh2 passes nothing to call when the client wants no answer.
    accept?.();
  });
  session.on('window-change', (accept) => void accept?.());
  session.on('env', (accept) => void accept?.());
  session.on('signal', () => interrupt.abort());
  session.once('close', () => interrupt.abort());
  session.once('exec', (accept, _reject, info) => {
    const channel = open(accept());
    void runOnce(channel, info.command, guest, hasTerminal, ended, interrupt);
  });
  session.once('shell', (accept) => {
    const channel = open(accept());
    if (hasTerminal) runTerminal(channel, guest, ended);
    else void runLines(channel, guest, ended);
  });
}

/** A client may vanish between any two writes. */
function open(channel: ServerChannel): ServerChannel {
  channel.on('error', () => {});
  channel.stderr.on('error', () => {});
  return channel;
}

function finish(channel: ServerChannel, status: number): void {
  channel.exit(status);
  channel.end();
}

/** The streams of a channel; a pty has one output and wants carriage returns. */
function streamsOf(channel: ServerChannel, hasTerminal: boolean, input: Promise<string>): Streams {
  const write = (text: string): void => {
    if (channel.writable) channel.write(hasTerminal ? text.replace(/\r?\n/g, '\r\n') : text);
  };
  const writeError = (text: string): void => {
    if (channel.writable) channel.stderr.write(text);
  };
  return { stdin: () => input, out: write, err: hasTerminal ? write : writeError };
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

/** All that the client sends, until it ends its input (on a pty: Ctrl-D) or is gone. */
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
  // Most commands never read their input, so nobody may be there to see that it was too much.
  input.catch(() => {});
  return input;
}

function runTerminal(channel: ServerChannel, guest: Guest, ended: AbortSignal): void {
  const terminal = new GuestTerminal(guest, {
    write: (text) => void channel.write(text),
    end: (status) => finish(channel, status),
  });
  channel.on('data', (chunk: Buffer) => terminal.type(chunk));
  channel.once('end', () => terminal.endInput());
  ended.addEventListener('abort', () => terminal.close(), { once: true });
}

/** A shell without a pty runs what it is sent, line by line. */
async function runLines(channel: ServerChannel, guest: Guest, ended: AbortSignal): Promise<void> {
  const shell = new GuestShell(guest);
  const script = await readInput(channel, false, ended, () => {});
  await shell.run(script, streamsOf(channel, false, Promise.resolve('')), ended);
  finish(channel, shell.lastStatus);
}
