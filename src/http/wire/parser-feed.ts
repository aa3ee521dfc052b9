import type { Socket } from 'node:net';

/** What node:http keeps of a connection, as far as it is used here. Node gives it no types. */
interface NodeHttpSocket extends Socket {
  parser?: { consume?(handle: object): void; unconsume?(): void; _consumed?: boolean } | null;
  _handle?: { reading: boolean; readStart(): unknown; readStop(): unknown } | null;
  _paused?: boolean;
}

/**
 * How bytes come to the parser that node:http has for a connection. Node lets it read from the handle itself, which is
 * a fifth cheaper, and hands on all requests that came at once. Here they come through {@link receive}, until
 * {@link readDirectly} asks for Node's own way.
 */
export class ParserFeed {
  readonly #socket: NodeHttpSocket;
  readonly #parse: (bytes: Buffer) => void;
  readonly #finish: () => void;
  #isDirect = false;

  /** For a socket that node:http has just begun to listen to. `receive` is told what comes, `end` that no more does. */
  constructor(socket: Socket, { receive, end }: { receive: (bytes: Buffer) => void; end: () => void }) {
    this.#socket = socket;
    const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
    if (parse === undefined) throw new Error('node:http does not listen to the connection');
    this.#parse = parse;
    socket.removeListener('data', parse);
    // This listener also makes node:http give the handle back.
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

  /** Nothing more comes: the connection closes behind the replies that are owed. */
  finish(): void {
    this.#finish.call(this.#socket);
  }

  /** From now on the parser reads from the handle, where this Node can do that and nothing is buffered. */
  readDirectly(): void {
    const { parser, _handle: handle, readableLength } = this.#socket;
    if (this.#isDirect || typeof parser?.consume !== 'function' || !handle || readableLength > 0) return;
    this.#isDirect = true;
    parser._consumed = true;
    parser.consume(handle);
    this.#socket.on('pause', stopReading);
    this.#socket.on('resume', startReading);
  }

  /** What has not been read yet comes through `receive` again. */
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

/** As node:http does where its parser reads from the handle: a stream that gets no bytes cannot hold them back. */
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
