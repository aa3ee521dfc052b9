import { parentPort } from 'node:worker_threads';
import type { Clock } from '../../../ports/clock.ts';
import type { Files, Guest } from './guest.ts';
import { serveGuestSession } from './session.ts';
import { GuestShell } from './shell.ts';
import { openSshServer, type SshServer, type SshServerOptions } from './ssh-server.ts';
import { type Handlers, type MessageEnd, ThreadCalls } from './thread-calls.ts';

/** Parameters of a guest's SSH server. `listens: false`: it only reserves the port for a moment and never listens. */
export type GuestServer = Omit<SshServerOptions, 'onSession'> & { listens: boolean };

interface OpenGuest {
  guest: Guest;
  server: SshServer | undefined;
  ended: AbortController;
}

/** The login grace time uses real time. A guest requests its own time from the platform. */
const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(delayMs, callback) {
    const timeout = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timeout) };
  },
};

/** The thread of all guests, with their SSH servers, sessions and shells. They cannot block the platform's thread. */
class GuestThread {
  readonly #calls: ThreadCalls;
  readonly #guests = new Map<number, OpenGuest>();

  constructor(end: MessageEnd) {
    const handlers: Handlers = {
      open: (id: number, server: GuestServer) => this.#open(id, server),
      run: (id: number, line: string) => this.#run(id, line),
      close: (id: number) => this.#close(id),
    };
    this.#calls = new ThreadCalls(end, handlers);
  }

  /** Returns the guest's port, or the port that it held for a moment. */
  async #open(id: number, { listens, ...options }: GuestServer): Promise<number> {
    const guest = this.#guestOf(id);
    const ended = new AbortController();
    const opened: OpenGuest = { guest, server: undefined, ended };
    this.#guests.set(id, opened);
    const server = await openSshServer(
      {
        ...options,
        onSession: (session, gone) =>
          serveGuestSession(session, guest, AbortSignal.any([gone, ended.signal])),
      },
      systemClock,
    );
    if (listens) opened.server = server;
    else await server.close();
    return server.port;
  }

  async #run(id: number, line: string): Promise<string> {
    const opened = this.#guests.get(id);
    if (opened === undefined) return '';
    const output: string[] = [];
    const collect = (text: string): void => void output.push(text);
    const shell = new GuestShell(opened.guest, 'root');
    shell.workingDirectory = '/';
    const streams = { stdin: async () => '', out: collect, err: collect, drained: async () => undefined };
    await shell.run(line, streams, opened.ended.signal);
    return output.join('');
  }

  async #close(id: number): Promise<void> {
    const opened = this.#guests.get(id);
    this.#guests.delete(id);
    opened?.ended.abort();
    await opened?.server?.close();
  }

  #guestOf(id: number): Guest {
    const ask = <T>(method: string, ...args: unknown[]) => this.#calls.call<T>(method, id, ...args);
    const files: Files = {
      stat: (path) => ask('stat', path),
      read: (path, user) => ask('read', path, user),
      write: (path, content, options) => ask('write', path, content, options),
      makeDirectory: (path, user) => ask('makeDirectory', path, user),
      remove: (path, user) => ask('remove', path, user),
      list: (path) => ask('list', path),
    };
    let sleeps = 0;
    return {
      facts: () => ask('facts'),
      files,
      sleep: async (ms, signal) => {
        const sleep = ++sleeps;
        const interrupt = (): void => void ask('wake', sleep).catch(() => undefined);
        signal.addEventListener('abort', interrupt, { once: true });
        const slept = ask<number>('sleep', sleep, ms);
        if (signal.aborted) interrupt();
        try {
          return await slept;
        } finally {
          signal.removeEventListener('abort', interrupt);
        }
      },
      powerOff: () => ask('powerOff'),
      reboot: () => ask('reboot'),
    };
  }
}

if (parentPort !== null) new GuestThread(parentPort);
