import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../../ports/clock.ts';
import type { DiskFiles, GuestFacts } from './guest.ts';
import { type Handlers, ThreadCalls } from './thread-calls.ts';
import type { GuestServer } from './worker.ts';

/** Memory limit of all guests together. Beyond it their thread ends, and the guests are restarted in a new one. */
const MAX_HEAP_MB = 256;

export interface GuestPlatform {
  facts(): GuestFacts;
  readonly files: DiskFiles;
  readonly clock: Clock;
  powerOff(): void;
  reboot(): void;
}

export interface HostedGuest {
  readonly port: number;
  /** Settles when its thread, and so the guest, has ended; never after `close`. */
  readonly lost: Promise<void>;
  /** Runs one line as root and resolves with its output; empty if the guest is gone. Never rejects. */
  run(line: string): Promise<string>;
  /** Ends its sessions, its processes and its SSH server. */
  close(): Promise<void>;
}

/**
 * Starts a guest in the thread that all guests share. The first guest starts the thread. Without guests, the thread
 * does not keep the process alive.
 */
export async function openGuest(server: GuestServer, platform: GuestPlatform): Promise<HostedGuest> {
  thread ??= new GuestThreadHost();
  return thread.open(server, platform);
}

let thread: GuestThreadHost | undefined;
let lastId = 0;

interface Entry {
  platform: GuestPlatform;
  lose(): void;
}

class GuestThreadHost {
  readonly #worker: Worker;
  readonly #calls: ThreadCalls;
  readonly #guests = new Map<number, Entry>();
  readonly #sleeps = new Map<string, { timer: Timer; resolve: (status: number) => void }>();

  constructor() {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#worker = new Worker(new URL(`./worker.${extension}`, import.meta.url), {
      name: 'guests',
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    this.#worker.unref();
    // An error ends the thread, and `exit` follows.
    this.#worker.on('error', () => {});
    this.#worker.once('exit', () => this.#ended());
    this.#calls = new ThreadCalls(this.#worker, this.#handlers());
  }

  async open(server: GuestServer, platform: GuestPlatform): Promise<HostedGuest> {
    const id = ++lastId;
    const { promise: lost, resolve: lose } = Promise.withResolvers<void>();
    this.#guests.set(id, { platform, lose });
    this.#worker.ref();
    try {
      const port = await this.#calls.call<number>('open', id, server);
      return {
        port,
        lost,
        run: (line) => this.#calls.call<string>('run', id, line).catch(() => ''),
        close: () => this.#close(id),
      };
    } catch (error) {
      this.#forget(id);
      throw error;
    }
  }

  async #close(id: number): Promise<void> {
    if (!this.#guests.has(id)) return;
    try {
      await this.#calls.call('close', id);
    } catch {
      // The thread is gone, and so is the guest.
    }
    this.#forget(id);
  }

  #forget(id: number): void {
    for (const [name, { timer, resolve }] of this.#sleeps)
      if (name.startsWith(`${id}/`)) {
        timer.cancel();
        resolve(130);
        this.#sleeps.delete(name);
      }
    this.#guests.delete(id);
    if (this.#guests.size === 0) this.#worker.unref();
  }

  #ended(): void {
    if (thread === this) thread = undefined;
    // Marks guests as lost first, so that a caller whose call now fails finds its guest down.
    for (const [id, { lose }] of [...this.#guests]) {
      this.#forget(id);
      lose();
    }
    this.#calls.fail(new Error('the guest thread has ended'));
  }

  #handlers(): Handlers {
    const of = (id: number): GuestPlatform => {
      const guest = this.#guests.get(id);
      if (guest === undefined) throw new Error('the guest is down');
      return guest.platform;
    };
    return {
      facts: (id: number) => of(id).facts(),
      stat: (id: number, path: string) => of(id).files.stat(path),
      read: (id: number, path: string, user: string) => of(id).files.read(path, user),
      write: (id: number, path: string, content: string, options: { user: string; append: boolean }) =>
        of(id).files.write(path, content, options),
      makeDirectory: (id: number, path: string, user: string) => of(id).files.makeDirectory(path, user),
      remove: (id: number, path: string, user: string) => of(id).files.remove(path, user),
      list: (id: number, path: string) => of(id).files.list(path),
      sleep: (id: number, sleep: number, ms: number) => this.#sleep(of(id).clock, `${id}/${sleep}`, ms),
      wake: (id: number, sleep: number) => this.#wake(`${id}/${sleep}`, 130),
      powerOff: (id: number) => of(id).powerOff(),
      reboot: (id: number) => of(id).reboot(),
    };
  }

  #sleep(clock: Clock, name: string, ms: number): Promise<number> {
    return new Promise((resolve) => {
      const timer = clock.setTimer(ms, () => this.#wake(name, 0));
      this.#sleeps.set(name, { timer, resolve });
    });
  }

  #wake(name: string, status: number): void {
    const sleeping = this.#sleeps.get(name);
    this.#sleeps.delete(name);
    sleeping?.timer.cancel();
    sleeping?.resolve(status);
  }
}
