/** Lists that one caller may be sent at a time: a client that reads slowly keeps one open for long. */
const AT_ONCE = 4;
const RETRY_AFTER_SECONDS = 2;

/** Items in JSON. */
interface ListPage {
  items: readonly string[];
}

/**
 * Sends long lists page by page, each read from the store when the client has taken the one before, so that none is
 * ever held in memory as a whole. Where a page cannot be read, the connection is broken: what came until then must
 * never look like a complete list (the client takes what a list lacks for gone).
 */
export class ListStreams {
  readonly #tooMany: (limit: number, retryAfterSeconds: number) => Error;
  readonly #open = new Map<string, number>();

  /** @param tooMany what refuses one more: this many are being sent already */
  constructor(tooMany: (limit: number, retryAfterSeconds: number) => Error) {
    this.#tooMany = tooMany;
  }

  /** How many are under way. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * The body of a reply: `head`, the items of `pages` with commas between the pages, and `tail`.
   *
   * @param client aborted when the client has gone
   * @param breakOff told why no more comes; false: it could not break the connection, and the body fails instead
   * @throws what `tooMany` made, where the caller has enough of them under way
   */
  open(
    caller: string,
    { head, pages, tail }: { head: string; pages: AsyncIterator<ListPage>; tail: string },
    client: AbortSignal,
    breakOff: (error: unknown) => boolean,
  ): ReadableStream<Uint8Array> {
    const close = this.#take(caller);
    client.addEventListener('abort', close);
    // It went while the first page was read: nobody may ever take the body, or cancel it.
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

/** Written one by one: a string of all of them would be made and copied first. */
function toBytes(start: string, items: readonly string[]): Buffer {
  const commas = items.length - 1;
  const length = items.reduce((sum, item) => sum + Buffer.byteLength(item), start.length + commas);
  const bytes = Buffer.alloc(length, ',');
  let end = bytes.write(start);
  for (const item of items) end += bytes.write(item, end) + 1;
  return bytes;
}
