import type { Context } from 'hono';
import type { Log } from '../../ports/log.ts';
import type { ApiErrors } from './errors.ts';
import type { RequestEnv } from './request-context.ts';

/** Maximum concurrent lists of one caller. A slow client keeps one open for long. */
const AT_ONCE = 4;
const RETRY_AFTER_SECONDS = 2;

/** Items in JSON. */
interface ListPage {
  items: readonly string[];
}

/** `head`, the items of `first` and of `rest` separated by commas, and `tail`. */
interface List {
  head: string;
  first: ListPage;
  rest: AsyncIterable<ListPage>;
  tail: string;
}

/**
 * Streams long lists page by page. Each page is read after the client took the previous one, so no list is held in
 * memory as a whole. A failed page breaks the connection: a client must not take a partial list for a complete one,
 * because it treats missing items as gone.
 */
export class ListStreams {
  readonly #tooMany: (limit: number, retryAfterSeconds: number) => Error;
  readonly #logFailure: (error: unknown, fields: object) => void;
  readonly #open = new Map<string, number>();

  /** @param tooMany creates the error for a list beyond the limit */
  constructor(
    errors: Pick<ApiErrors<string>, 'from' | 'log'>,
    log: Log,
    tooMany: (limit: number, retryAfterSeconds: number) => Error,
  ) {
    this.#logFailure = (error, fields) => errors.log(log, errors.from(error), fields);
    this.#tooMany = tooMany;
  }

  /** Number of open lists. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * Returns the body of the reply to a caller. If a page fails and the connection cannot be broken, the body fails.
   * @throws the error of `tooMany` if the caller has too many open lists
   */
  open<E extends RequestEnv>(
    caller: string,
    { head, first, rest, tail }: List,
    context: Context<E>,
  ): ReadableStream<Uint8Array> {
    const client = context.req.raw.signal;
    const close = this.#take(caller);
    client.addEventListener('abort', close);
    // If the client left while the first page was read, the body may never be read or cancelled.
    if (client.aborted) close();
    const pages = following(first, rest);
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
            this.#logFailure(error, { request_id: context.get('requestId'), path: context.req.path });
            const outgoing = context.env?.outgoing;
            if (outgoing === undefined) controller.error(error);
            else outgoing.destroy();
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

async function* following(first: ListPage, rest: AsyncIterable<ListPage>): AsyncGenerator<ListPage, void> {
  yield first;
  yield* rest;
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
