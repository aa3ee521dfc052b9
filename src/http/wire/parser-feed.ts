import type { Socket } from 'node:net';

/** Internal properties of node:http sockets. Node does not declare types for them. */
interface NodeHttpSocket extends Socket {
  parser?: { consume?(handle: object): void; unconsume?(): void; _consumed?: boolean } | null;
  _handle?: { reading: boolean; readStart(): unknown; readStop(): unknown } | null;
  _paused?: boolean;
}

/**
 * Controls how bytes reach node:http's parser. By default Node's parser reads from the handle, which costs a fifth less
 * but passes on all pipelined requests. Here bytes go through {@link receive} until {@link readDirectly} restores the
 * default.
 */
export class ParserFeed {
  readonly #socket: NodeHttpSocket;
  readonly #parse: (bytes: Buffer) => void;
  readonly #finish: () => void;
  #isDirect = false;

  /**
   * For a socket to which node:http has just attached. `receive` is called with the received bytes, `end` at the end of
   * the input.
   */
  constructor(socket: Socket, { receive, end }: { receive: (bytes: Buffer) => void; end: () => void }) {
    this.#socket = socket;
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined) throw new Error('node:http does not listen to the connection');
    this.#parse = parse;
    socket.removeListener('data', parse);
    // Adding this listener also makes node:http release the handle.
    socket.on('data', receive);
    const finish = (socket.listeners('end') as (() => void)[]).at(-1);
    if (finish?.name !== 'bound socketOnEnd') throw new Error('node:http does not wait for the end');
    this.#finish = finish;
    socket.removeListener('end', finish);
    socket.on('end', end);
  }

  get isDirect(): boolean {
    return this.#isDirect;
  }

  parse(bytes: Buffer): void {
    this.#parse(bytes);
  }

  /** Ends the input: the connection closes after the pending replies. */
  finish(): void {
    this.#finish.call(this.#socket);
  }

  /** Lets the parser read from the handle, if this Node version can and nothing is buffered. */
  readDirectly(): void {
    const { parser, _handle: handle, readableLength } = this.#socket;
    if (this.#isDirect || typeof parser?.consume !== 'function' || !handle || readableLength > 0) return;
    this.#isDirect = true;
    parser._consumed = true;
    parser.consume(handle);
    this.#socket.on('pause', stopReading);
    this.#socket.on('resume', startReading);
  }

  /** Sends further bytes through `receive` again. */
  readHere(): void {
    if (!this.#isDirect) return;
    this.#isDirect = false;
    const { parser } = this.#socket;
    if (parser?._consumed) {
      parser._consumed = false;
      parser.unconsume?.();
    }
    this.#socket.removeListener('pause', stopReading);
    this.#socket.removeListener('resume', startReading);
  }
}

/** As node:http does when its parser reads from the handle: the stream gets no bytes and cannot hold them back. */
function stopReading(this: NodeHttpSocket): void {
  const { _handle: handle } = this;
  if (!handle?.reading) return;
  handle.reading = false;
  handle.readStop();
}

function startReading(this: NodeHttpSocket): void {
  if (this._paused) {
    this.pause();
    return;
  }
  const { _handle: handle } = this;
  if (!handle || handle.reading) return;
  handle.reading = true;
  handle.readStart();
}
