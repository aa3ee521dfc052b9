/** Maximum concurrent lists of one caller. A slow client keeps one open for long. */
const AT_ONCE = 4;
const RETRY_AFTER_SECONDS = 2;

/** Items in JSON. */
interface ListPage {
  items: readonly string[];
}

/**
 * Streams long lists page by page. Each page is read after the client took the previous one, so no list is held in
 * memory as a whole. A failed page breaks the connection: a client must not take a partial list for a complete one,
 * because it treats missing items as gone.
 */
export class ListStreams {
  readonly #tooMany: (limit: number, retryAfterSeconds: number) => Error;
  readonly #open = new Map<string, number>();

  /** @param tooMany creates the error for a list beyond the limit */
  constructor(tooMany: (limit: number, retryAfterSeconds: number) => Error) {
    this.#tooMany = tooMany;
  }

  /** Number of open lists. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Returns the body of a reply: `head`, the items of `pages` separated by commas, and `tail`.
   * @param client aborted when the client disconnects
   * @param breakOff breaks the connection, given the cause. If it returns false, it could not, and the body fails
   * instead
   * @throws the error of `tooMany` if the caller has too many open lists
   */
  open(
    caller: string,
    { head, pages, tail }: { head: string; pages: AsyncIterator<ListPage>; tail: string },
    client: AbortSignal,
    breakOff: (error: unknown) => boolean,
  ): ReadableStream<Uint8Array> {
    const close = this.#take(caller);
    client.addEventListener('abort', close);
    // If the client left while the first page was read, the body may never be read or cancelled.
    if (client.aborted) close();
    let isFirst = true;
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, items } = await nextWithItems(pages);
            const start = isFirst ? head : done ? '' : ',';
            isFirst = false;
            controller.enqueue(done ? Buffer.from(start + tail) : toBytes(start, items));
            if (!done) return;
            close();
            controller.close();
          } catch (error) {
            close();
            if (!breakOff(error)) controller.error(error);
          }
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );
  }

  #take(caller: string): () => void {
    const count = this.#open.get(caller) ?? 0;
    if (count >= AT_ONCE) throw this.#tooMany(AT_ONCE, RETRY_AFTER_SECONDS);
    this.#open.set(caller, count + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const left = (this.#open.get(caller) ?? 1) - 1;
      if (left > 0) this.#open.set(caller, left);
      else this.#open.delete(caller);
    };
  }
}

async function nextWithItems(pages: AsyncIterator<ListPage>): Promise<ListPage & { done: boolean }> {
  for (;;) {
    const { done = false, value } = await pages.next();
    if (done) return { done, items: [] };
    if (value.items.length > 0) return { done, items: value.items };
  }
}

/** Writes the items one by one: joining them would build and copy a large string first. */
function toBytes(start: string, items: readonly string[]): Buffer {
  const commas = items.length - 1;
  const length = items.reduce((sum, item) => sum + Buffer.byteLength(item), start.length + commas);
  const bytes = Buffer.alloc(length, ',');
  let end = bytes.write(start);
  for (const item of items) end += bytes.write(item, end) + 1;
  return bytes;
}
