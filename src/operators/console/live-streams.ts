import type { Clock, Timer } from '../../ports/clock.ts';

/** How many pages may wait for changes at a time, in all. */
export const MAX_STREAMS = 64;
/** At most so often the pages are told to read again. */
export const TICK_MS = 2_000;
/** After so many ticks pages are told in any case: no commit of another program is heard. */
const TICKS_BETWEEN_BEATS = 5;
/** What was sent and not read: a client that takes none of so many messages is cut off. */
const MAX_UNREAD = 3;

interface Deps {
  clock: Clock;
  /** Calls `changed` after each commit; returns what ends that. */
  subscribe?: ((changed: () => void) => () => void) | undefined;
}

interface Stream {
  controller: ReadableStreamDefaultController<Uint8Array>;
  /** False: its session has ended. */
  isAllowed: () => Promise<boolean>;
}

const CHANGED = Buffer.from('event: changed\ndata:\n\n');
const HELLO = Buffer.from('retry: 3000\n: this stream says when to read the page again\n\n');

/** Tells open pages by server-sent events that something has changed; what it is, they read. */
export class LiveStreams {
  readonly #deps: Deps;
  readonly #open = new Set<Stream>();
  #unsubscribe: (() => void) | undefined;
  #timer: Timer | undefined;
  #hasChanged = false;
  #ticks = 0;
  #isClosed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Null: there are enough of them, or the server drains. */
  open(isAllowed: () => Promise<boolean>, client: AbortSignal): ReadableStream<Uint8Array> | null {
    if (this.#isClosed || this.#open.size >= MAX_STREAMS) return null;
    let stream: Stream | undefined;
    const forget = (): void => {
      if (stream !== undefined) this.#forget(stream);
    };
    client.addEventListener('abort', forget);
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          stream = { controller, isAllowed };
          this.#open.add(stream);
          this.#start();
          controller.enqueue(HELLO);
        },
        cancel: forget,
      },
      { highWaterMark: 1 },
    );
  }

  /** Ends every stream: the server drains. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#open) this.#end(stream);
  }

  #start(): void {
    if (this.#timer !== undefined) return;
    this.#unsubscribe = this.#deps.subscribe?.(() => {
      this.#hasChanged = true;
    });
    this.#schedule();
  }

  #schedule(): void {
    this.#timer = this.#deps.clock.setTimer(TICK_MS, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const own = this.#timer;
    const isBeat = ++this.#ticks % TICKS_BETWEEN_BEATS === 0;
    if (isBeat || this.#hasChanged) {
      this.#hasChanged = false;
      await Promise.all([...this.#open].map((stream) => this.#tell(stream, isBeat)));
    }
    // Another timer, or none: all pages went meanwhile, and others may have come.
    if (this.#timer === own) this.#schedule();
  }

  async #tell(stream: Stream, isBeat: boolean): Promise<void> {
    const isAllowed = !isBeat || (await stream.isAllowed());
    // The page may have gone meanwhile.
    if (!this.#open.has(stream)) return;
    if (!isAllowed) return this.#end(stream);
    // What was not read yet says the same.
    const unread = 1 - (stream.controller.desiredSize ?? 1);
    if (unread >= MAX_UNREAD) return this.#cut(stream);
    if (unread === 0 || isBeat) stream.controller.enqueue(CHANGED);
  }

  #end(stream: Stream): void {
    this.#forget(stream);
    stream.controller.close();
  }

  #cut(stream: Stream): void {
    this.#forget(stream);
    stream.controller.error(new Error('the page reads nothing of its stream'));
  }

  #forget(stream: Stream): void {
    this.#open.delete(stream);
    if (this.#open.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }
}
