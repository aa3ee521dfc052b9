import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ParserFeed } from './parser-feed.ts';

const END_OF_HEAD = '\r\n\r\n';
/** Requests that may be parsed ahead, on all connections together: each takes some kilobytes. */
const MAX_EARLY = 4_096;
/** How long a client may take to read the last reply before its connection is cut. */
const LINGER_MS = 1_000;

const connections = new WeakMap<object, Connection>();
let earlyRequests = 0;

/** The connection of a socket; undefined: HTTP is not spoken on it. */
export function connectionOf(socket: object): Connection | undefined {
  return connections.get(socket);
}

/**
 * One connection, on which a request is handed on when the reply before it was flushed to the kernel, and not before.
 *
 * node:http parses all that came at once, and hands on every request in it: a client that sends many and reads no reply
 * makes the server hold them all. So the bytes go to the parser head by head, and what comes behind a request that is
 * not answered yet is held as it came, with the socket paused. A client that has shown its key and sends one request
 * after another is read the cheap way, until it sends two at once.
 */
export class Connection {
  readonly socket: Socket;
  readonly #listener: RequestListener;
  readonly #feed: ParserFeed;
  #isTrusted = false;
  /** Set: two requests came at once. */
  #hasPipelined = false;
  /** What came behind the request that is being answered. */
  #buffered: Buffer | undefined;
  /** Requests that were parsed before the reply ahead of them was flushed. */
  readonly #early: { request: IncomingMessage; response: ServerResponse }[] = [];
  /** The reply that is under way, or was last. */
  #reply: ServerResponse | undefined;
  #hasReceived = false;
  /** Set: the client sends no more. */
  #hasInputEnded = false;
  /** Set: what is held is not answered any more. */
  #isLast = false;
  /** Set: no further request is handed on. */
  #isEnded = false;

  /** For a socket that node:http has just begun to listen to. */
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

  /** Whether a reply is under way, or has bytes that the kernel did not take yet. */
  get isReplying(): boolean {
    return this.#reply !== undefined && !this.#reply.writableFinished;
  }

  /** Whether the client has sent anything yet. */
  get hasReceived(): boolean {
    return this.#hasReceived;
  }

  /** Whether nothing is owed to the client. */
  get isIdle(): boolean {
    if (this.isReplying || this.#buffered !== undefined) return false;
    return this.#reply?.req.complete ?? !this.#hasReceived;
  }

  /**
   * Whether the client waits for the reply to an earlier, complete request, or has part of one: it would take another
   * reply for that.
   */
  get owesReply(): boolean {
    const reply = this.#reply;
    if (reply === undefined || reply.writableFinished) return false;
    return reply.headersSent || reply.req.complete;
  }

  /** The client has sent a valid credential. */
  trust(): void {
    this.#isTrusted = !this.#hasPipelined;
  }

  /**
   * Hands a request on, now or in its turn. It may be parsed too early: where the end of a head came in two parts, the
   * next end that is found is that of the request behind it; and where a client that was trusted sends two at once.
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

  /** The server is shutting down: requests that have not begun are not answered. */
  closeAfterReply(): void {
    this.#isLast = true;
  }

  /**
   * Sends these bytes as the last ones, discards further input, and closes the connection once the client had time to
   * read.
   */
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

  /** Gives bytes to the parser until a request among them has to be answered first. */
  #pass(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.socket.destroyed) {
      // Of a request that was refused, the body is read to its end and thrown away.
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
   * node:http closes as soon as the last reply is written. A client that is still sending would have its connection
   * reset, and lose the reply: what it sends is thrown away until it has read, or for a while.
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
    // Whoever read the body has stopped, and would hold up the rest.
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
