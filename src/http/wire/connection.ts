import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Limit on requests that were parsed and are never begun, over all connections. Each takes some kilobytes. */
const MAX_DROPPED = 4_096;
/** How long a client may take to read a refusal before its connection is closed. */
const LINGER_MS = 1_000;

let droppedRequests = 0;

/**
 * One connection, on which one request is answered at a time. A request begins once the previous reply was flushed to
 * the kernel. If requests arrive behind one whose handler has not answered yet, its reply says `Connection: close`,
 * they are dropped, and the connection is closed after the reply.
 */
export class Connection {
  readonly socket: Socket;
  readonly #listener: RequestListener;
  /** The current reply, or the last one. */
  #reply: ServerResponse | undefined;
  /** A request that arrived after its predecessor was answered and before that reply was flushed. */
  #next: ServerResponse | undefined;
  /** If true, no further request is begun. */
  #isLast = false;
  #isRefused = false;
  #dropped = 0;

  constructor(socket: Socket, listener: RequestListener) {
    this.socket = socket;
    this.#listener = listener;
    socket.once('close', () => {
      droppedRequests -= this.#dropped;
    });
  }

  /** Whether a reply is under way, or has bytes that the kernel has not taken yet. */
  get isReplying(): boolean {
    return this.#reply !== undefined && !this.#reply.writableFinished;
  }

  /** Whether the last reply is complete. */
  get hasReplied(): boolean {
    return this.#reply?.writableFinished === true;
  }

  /** Whether the client has sent anything yet. */
  get hasReceived(): boolean {
    return this.socket.bytesRead > 0;
  }

  /** Whether no reply or request is pending. */
  get isIdle(): boolean {
    if (this.isReplying || this.#next !== undefined) return false;
    return this.#reply?.req.complete ?? !this.hasReceived;
  }

  /** Passes a request on, now or when it is its turn, or drops it. */
  take(response: ServerResponse): void {
    if (this.socket.destroyed || this.#isRefused) return;
    if (!this.isReplying) {
      this.#begin(response);
    } else if (this.#isLast || this.#next !== undefined || this.#reply?.writableEnded === false) {
      this.#drop();
    } else {
      this.#next = response;
      this.#reply?.once('finish', this.#beginNext);
    }
  }

  /** Makes the current request the last one. */
  closeAfterReply(): void {
    if (this.#isLast) return;
    this.#isLast = true;
    const last = this.#next ?? this.#reply;
    if (last === undefined || last.writableFinished) return;
    if (last.headersSent) last.once('finish', () => this.socket.destroySoon());
    else last.setHeader('Connection', 'close');
  }

  /**
   * Refuses input that is not a request. Sends these last bytes and closes the connection once the client had time to
   * read. If the reply to an earlier request is pending, that reply is the last one instead.
   */
  refuse(toBytes: () => string): void {
    if (this.#isRefused) return;
    const reply = this.#reply;
    if (this.isReplying && reply?.req.complete) {
      this.closeAfterReply();
    } else if (!this.socket.writable || (reply?.headersSent && (this.isReplying || !reply.req.complete))) {
      this.socket.destroy();
    } else {
      this.#isRefused = true;
      this.socket.end(toBytes());
      const late = setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
      this.socket.once('close', () => clearTimeout(late));
    }
  }

  /** Reads nothing more until the reply has drained: what the client sends meanwhile would count as activity. */
  pauseUntilDrained(): void {
    if (this.socket.writableLength === 0 || this.socket.isPaused() || !this.isReplying) return;
    this.socket.pause();
    this.#reply?.once('finish', () => this.socket.resume());
  }

  #begin(response: ServerResponse): void {
    this.#reply = response;
    if (this.#isLast) response.setHeader('Connection', 'close');
    // Node emits all requests of a packet in one turn. So the reply can still say whether it is the last one.
    process.nextTick(this.#run, response.req, response);
  }

  readonly #run = (request: IncomingMessage, response: ServerResponse): void => {
    if (!this.socket.destroyed) this.#listener(request, response);
  };

  readonly #beginNext = (): void => {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined && !this.socket.destroyed && !this.#isRefused) this.#begin(next);
  };

  #drop(): void {
    this.#dropped++;
    droppedRequests++;
    if (droppedRequests > MAX_DROPPED) {
      this.socket.destroy();
      return;
    }
    this.closeAfterReply();
    this.socket.pause();
  }
}
