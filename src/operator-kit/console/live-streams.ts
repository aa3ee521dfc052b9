import type { Clock, Timer } from '../../ports/clock.ts';

/** Maximum number of pages that wait for changes. */
export const MAX_STREAMS = 64;
/** Minimum interval between notifications. */
export const TICK_MS = 2_000;
/** Ticks between unconditional notifications, which cover commits of other processes. */
const TICKS_BETWEEN_BEATS = 5;
/** Limit on unread messages. A client that reaches it is disconnected. */
const MAX_UNREAD = 3;

interface Deps {
  clock: Clock;
  /** Calls `changed` after each commit. Returns the function that unsubscribes. */
  subscribe?: ((changed: () => void) => () => void) | undefined;
}

interface Stream {
  controller: ReadableStreamDefaultController<Uint8Array>;
  /** False if its session has ended. */
  isAllowed: () => Promise<boolean>;
}

const CHANGED = Buffer.from('event: changed\ndata:\n\n');
const HELLO = Buffer.from('retry: 3000\n: this stream reports when to reload the page\n\n');

/** Notifies open pages of changes by server-sent events. A page then reads the change itself. */
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

  /** Opens a stream. Null if the limit is reached, or the server is shutting down. */
  open(isAllowed: () => Promise<boolean>, client: AbortSignal): ReadableStream<Uint8Array> | null {
    if (this.#isClosed || this.#open.size >= MAX_STREAMS) return null;
    let stream: Stream | undefined;
    const forget = (): void => {
      if (stream !== undefined) this.#forget(stream);
    };
    client.addEventListener('abort', forget);
    const body = new ReadableStream<Uint8Array>(
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
    // If the client has already left, the body is never read or cancelled.
    if (client.aborted) forget();
    return body;
  }

  /** Ends every stream, for shutdown. */
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
    // If all pages closed during the await, the timer has changed: it is undefined, or belongs to new pages.
    if (this.#timer === own) this.#schedule();
  }

  async #tell(stream: Stream, isBeat: boolean): Promise<void> {
    const isAllowed = !isBeat || (await stream.isAllowed());
    // The page may have closed during the await.
    if (!this.#open.has(stream)) return;
    if (!isAllowed) return this.#end(stream);
    // An unread message already announces a change.
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
    stream.controller.error(new Error('the client does not read its stream'));
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
