import type { Writable } from 'node:stream';
import type { ServerChannel, Session } from 'ssh2';
import type { Streams } from './commands.ts';
import { GUEST_USER, type Guest } from './guest.ts';
import { GuestShell } from './shell.ts';

const MAX_INPUT_BYTES = 256 * 1024;
/** The longest line that a shell reads. */
const MAX_LINE_CHARS = 4_096;

/**
 * One SSH session in the guest: a command, or a shell that runs its input line by line. There are no terminals: a client
 * that asks for one edits its lines itself. Subsystems, forwarding and agents have no listener, so they are refused.
 * `gone` aborts when the connection is closed or the guest goes down.
 */
export function serveGuestSession(session: Session, guest: Guest, gone: AbortSignal): void {
  let isTyped = false;
  const interrupt = new AbortController();
  const ended = AbortSignal.any([gone, interrupt.signal]);
  session.on('pty', (_accept, reject) => {
    isTyped = true;
    // ssh2 passes no function if the client wants no reply.
    reject?.();
  });
  session.on('env', (accept) => void accept?.());
  session.on('signal', () => interrupt.abort());
  session.once('close', () => interrupt.abort());
  session.once('exec', (accept, _reject, { command }) => {
    const channel = open(accept());
    const input = readInput(channel, interrupt.signal);
    const running = new GuestShell(guest).run(command, { ...streamsOf(channel), stdin: () => input }, ended);
    void running.then((status) => finish(channel, status)).catch(() => channel.close());
  });
  session.once('shell', (accept) => {
    const channel = open(accept());
    void talk(channel, guest, isTyped, ended).catch(() => channel.close());
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

/** The streams of a channel without input. */
function streamsOf(channel: ServerChannel): Streams {
  const writeTo = (stream: Writable) => (text: string) => {
    if (channel.writable) stream.write(text);
  };
  return {
    stdin: async () => '',
    out: writeTo(channel),
    err: writeTo(channel.stderr),
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

/** Reads a command's input until it ends or the client is gone. */
function readInput(channel: ServerChannel, interrupt: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (): void => resolve(Buffer.concat(chunks).toString());
    channel.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_INPUT_BYTES) channel.close();
    });
    channel.once('end', end);
    interrupt.addEventListener('abort', end, { once: true });
  });
}

/** A shell without a terminal. `isTyped`: it has a prompt. */
async function talk(
  channel: ServerChannel,
  guest: Guest,
  isTyped: boolean,
  ended: AbortSignal,
): Promise<void> {
  const shell = new GuestShell(guest);
  const streams = streamsOf(channel);
  const { image, hostname } = guest.facts().spec;
  const prompt = (): void => {
    if (isTyped) streams.out(`${GUEST_USER}@${hostname}:${shell.workingDirectory}$ `);
  };
  if (isTyped) streams.out(`Welcome to ${image} (simulated by Berth) on ${hostname}\n\n`);
  prompt();
  for await (const line of linesOf(channel)) {
    await shell.run(line, streams, ended);
    if (shell.hasExited || ended.aborted) break;
    prompt();
  }
  finish(channel, shell.lastStatus);
}

/** The client's lines. Ends at a line that is too long. */
async function* linesOf(channel: ServerChannel): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of channel.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (rest.length > MAX_LINE_CHARS) return;
  }
  if (rest !== '') yield rest;
}
