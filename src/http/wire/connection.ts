import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ParserFeed } from './parser-feed.ts';

const END_OF_HEAD = '\r\n\r\n';
/** Limit on requests that are parsed early, over all connections. Each takes some kilobytes. */
const MAX_EARLY = 4_096;
/** How long a client may take to read the last reply before its connection is closed. */
const LINGER_MS = 1_000;

const connections = new WeakMap<object, Connection>();
let earlyRequests = 0;

/** The connection of a socket. Undefined: it does not speak HTTP. */
export function connectionOf(socket: object): Connection | undefined {
  return connections.get(socket);
}

/**
 * One connection. A request is passed on only after the previous reply was flushed to the kernel. node:http would parse
 * and pass on all pipelined requests, and the server would hold them all. So bytes go to the parser head by head, and
 * the rest waits with the socket paused. Authenticated clients are read directly, until they pipeline.
 */
export class Connection {
  readonly socket: Socket;
  readonly #listener: RequestListener;
  readonly #feed: ParserFeed;
  #isTrusted = false;
  /** Set: the client has pipelined requests. */
  #hasPipelined = false;
  /** Bytes received after the request that is being answered. */
  #buffered: Buffer | undefined;
  /** Requests that were parsed before the previous reply was flushed. */
  readonly #early: { request: IncomingMessage; response: ServerResponse }[] = [];
  /** The current reply, or the last one. */
  #reply: ServerResponse | undefined;
  #hasReceived = false;
  /** Set: the client has ended its input. */
  #hasInputEnded = false;
  /** Set: buffered requests are no longer answered. */
  #isLast = false;
  /** Set: no further request is passed on. */
  #isEnded = false;

  /** For a socket to which node:http has just attached. */
  constructor(socket: Socket, listener: RequestListener) {
    this.socket = socket;
    this.#listener = listener;
    this.#feed = new ParserFeed(socket, {
      receive: (bytes) => this.#receive(bytes),
      end: () => {
        this.#hasInputEnded = true;
        this.#finishOnceTaken();
      },
    });
    connections.set(socket, this);
    socket.once('close', () => this.#forgetEarly());
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => this.#endAfterReply(destroySoon);
  }

  /** Whether a reply is under way, or has bytes that the kernel has not taken yet. */
  get isReplying(): boolean {
    return this.#reply !== undefined && !this.#reply.writableFinished;
  }

  /** Whether the client has sent anything yet. */
  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Whether no reply or request is pending. */
  get isIdle(): boolean {
    if (this.isReplying || this.#buffered !== undefined) return false;
    return this.#reply?.req.complete ?? !this.#hasReceived;
  }

  /**
   * Whether the client waits for the reply to an earlier, complete request, or has received part of one. It would take
   * another reply for that one.
   */
  get owesReply(): boolean {
    const reply = this.#reply;
    if (reply === undefined || reply.writableFinished) return false;
    return reply.headersSent || reply.req.complete;
  }

  /** Records that the client has sent a valid credential. */
  trust(): void {
    this.#isTrusted = !this.#hasPipelined;
  }

  /**
   * Passes a request on, now or when it is its turn. It may be parsed early in two cases: the end of the head before it
   * came in two parts, or a trusted client pipelines.
   */
  take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isEnded) return;
    if (!this.isReplying) {
      this.#reply = response;
      this.#listener(request, response);
      return;
    }
    this.#hasPipelined = true;
    this.#feed.readHere();
    if (earlyRequests >= MAX_EARLY) {
      this.socket.destroy();
      return;
    }
    earlyRequests++;
    this.#early.push({ request, response });
    this.#waitForReply();
  }

  /** For shutdown: requests that have not begun are not answered. */
  closeAfterReply(): void {
    this.#isLast = true;
  }

  /** Sends these last bytes, discards further input, and closes the connection once the client had time to read. */
  refuse(bytes: string): void {
    this.socket.end(bytes);
    this.#discardInput();
  }

  #receive(bytes: Buffer): void {
    this.#hasReceived = true;
    if (this.#buffered !== undefined) {
      this.#buffer(Buffer.concat([this.#buffered, bytes]));
      return;
    }
    this.#pass(bytes);
    if (this.#isTrusted && !this.#hasPipelined) this.#feed.readDirectly();
  }

  /** Passes bytes to the parser until one of the requests must be answered first. */
  #pass(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.socket.destroyed) {
      // The body of a refused request is read to its end and discarded.
      if (this.#isEnded && this.#reply?.req.complete !== false) return;
      if (!this.#isEnded && this.#mustWait()) {
        this.#buffer(rest);
        return;
      }
      const found = rest.indexOf(END_OF_HEAD);
      const end = found === -1 ? rest.length : found + END_OF_HEAD.length;
      this.#feed.parse(end === rest.length ? rest : rest.subarray(0, end));
      rest = rest.subarray(end);
    }
  }

  #mustWait(): boolean {
    return this.#early.length > 0 || (this.isReplying && this.#reply?.req.complete === true);
  }

  #buffer(bytes: Buffer): void {
    if (this.#buffered === undefined) this.#waitForReply();
    this.#hasPipelined = true;
    this.#buffered = bytes;
    this.socket.pause();
  }

  #waitForReply(): void {
    this.#reply?.removeListener('finish', this.#answerNext).once('finish', this.#answerNext);
  }

  readonly #answerNext = (): void => {
    if (this.socket.destroyed || this.#isEnded) return;
    const early = this.#early.shift();
    if (early !== undefined) {
      earlyRequests--;
      this.take(early.request, early.response);
      this.#waitForReply();
      this.#finishOnceTaken();
      return;
    }
    if (this.#isLast) {
      this.socket.end();
      this.#discardInput();
      return;
    }
    const buffered = this.#buffered;
    this.#buffered = undefined;
    if (buffered !== undefined) this.#pass(buffered);
    if (this.#buffered === undefined) this.socket.resume();
    this.#finishOnceTaken();
  };

  /**
   * node:http closes right after the last reply. A client that is still sending would get a reset and lose the reply.
   * So its input is discarded until it has read the reply, or for a limited time.
   */
  #endAfterReply(destroySoon: () => void): void {
    if (this.#isEnded) return;
    const request = this.#reply?.req;
    const hasMore = this.#buffered !== undefined || this.#early.length > 0;
    if (request === undefined || (request.complete && !hasMore)) {
      destroySoon();
      return;
    }
    this.socket.end();
    this.#discardInput();
    // The body's reader has stopped, and would block the remaining input.
    if (!request.complete) request.removeAllListeners('data').resume();
  }

  #finishOnceTaken(): void {
    if (this.#hasInputEnded && this.#buffered === undefined && this.#early.length === 0) this.#feed.finish();
  }

  #forgetEarly(): void {
    earlyRequests -= this.#early.length;
    this.#early.length = 0;
  }

  #discardInput(): void {
    this.#isEnded = true;
    this.#buffered = undefined;
    this.#forgetEarly();
    this.#feed.readHere();
    this.socket.resume();
    const late = setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
    this.socket.once('close', () => clearTimeout(late));
  }
}
