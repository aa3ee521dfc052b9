import {
  type ClientRequest,
  type Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { FailureKind } from '../transcript/records.ts';
import { type ExchangePhase, toHttpFailure } from './http-failure.ts';
import { tlsKeyOf } from './tls-key.ts';
import type { HttpAnswer, HttpRequest, SendLimits } from './transport.ts';

/** Keep-alive connections, and connections for a single request. */
export interface Connections {
  kept: HttpAgent | HttpsAgent;
  fresh: HttpAgent | HttpsAgent;
}

export interface ExchangeOptions {
  agent: HttpAgent | HttpsAgent;
  limits: SendLimits;
  /** On the clock of `performance.now()`. */
  endsAt: number;
  /** Aborted when the transport is closed. */
  closing: AbortSignal;
  onSocket(socket: Socket): void;
}

export interface ExchangeFailure {
  failure: FailureKind;
  message: string;
  tlsKey?: string;
}

/** Size limit of the response headers. */
const MAX_HEADER_BYTES = 32_768;

/** One request on one connection, and its outcome. */
export class HttpExchange {
  readonly #request: HttpRequest;
  readonly #url: URL;
  readonly #options: ExchangeOptions;
  #phase: ExchangePhase = 'resolve';
  #outgoing: ClientRequest | undefined;
  #incoming: IncomingMessage | undefined;
  #sentAt = 0;
  #tlsKey: string | undefined;
  #firstByteAt: number | undefined;
  #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #settle: ((outcome: HttpAnswer | ExchangeFailure) => void) | undefined;
  readonly #interrupt = (): void => this.#fail('interrupted', 'the run was interrupted');

  /** Whether the failure may come from a reused connection that had gone stale. */
  wasStale = false;

  constructor(request: HttpRequest, url: URL, options: ExchangeOptions) {
    this.#request = request;
    this.#url = url;
    this.#options = options;
  }

  /** Never throws. Call it once. */
  run(): Promise<HttpAnswer | ExchangeFailure> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      const { closing, limits, endsAt } = this.#options;
      for (const signal of [closing, limits.signal]) {
        if (signal?.aborted) return this.#interrupt();
        signal?.addEventListener('abort', this.#interrupt);
      }
      this.#timer = setTimeout(() => this.#timeOut(), Math.max(0, endsAt - performance.now()));
      try {
        this.#send();
      } catch (error) {
        this.#fail('not_http', `this request cannot be written as HTTP: ${(error as Error).message}`);
      }
    });
  }

  #send(): void {
    const { method, body } = this.#request;
    const headers: Record<string, string | number> = { ...this.#request.headers };
    if (body !== undefined && !('content-length' in headers) && !('transfer-encoding' in headers))
      headers['content-length'] = Buffer.byteLength(body);
    const open = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = open({
      hostname: this.#host,
      port: this.#url.port,
      path: pathOf(this.#request.url),
      method,
      headers,
      agent: this.#options.agent,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    this.#outgoing = outgoing;
    outgoing.once('socket', (socket) => this.#follow(socket, outgoing.reusedSocket));
    outgoing.once('response', (incoming) => this.#receive(incoming));
    outgoing.once('upgrade', (_incoming, socket) => {
      socket.destroy();
      this.#fail('not_http', `${this.#address} switched to another protocol, though it was not asked to`);
    });
    outgoing.on('error', (error) => this.#failWith(error));
    outgoing.once('close', () => this.#failWith(new Error('the connection was closed')));
    // As bytes: Node would join a string with the headers and encode those as UTF-8.
    outgoing.end(body === undefined ? undefined : Buffer.from(body));
  }

  #follow(socket: Socket, isReused: boolean): void {
    this.#options.onSocket(socket);
    // Before Node.js's own listener, so that the time is taken before parsing.
    socket.prependOnceListener('data', () => {
      this.#firstByteAt = performance.now();
      this.#phase = 'answer';
    });
    if (isReused || !socket.connecting) {
      this.#tlsKey = tlsKeyOf(socket);
      this.#sent();
      return;
    }
    if (isIP(this.#host) !== 0) this.#phase = 'connect';
    socket.once('lookup', (error) => {
      if (error === null) this.#phase = 'connect';
    });
    socket.once('connect', () => {
      if (this.#url.protocol === 'https:') this.#phase = 'tls';
      else this.#sent();
    });
    socket.once('secureConnect', () => {
      this.#tlsKey = tlsKeyOf(socket);
      this.#sent();
    });
  }

  #sent(): void {
    this.#phase = 'wait';
    this.#sentAt = performance.now();
  }

  #receive(incoming: IncomingMessage): void {
    this.#incoming = incoming;
    const { maxBodyBytes } = this.#options.limits;
    incoming.on('data', (chunk: Buffer) => {
      this.#bodyBytes += chunk.length;
      if (this.#bodyBytes <= maxBodyBytes) this.#chunks.push(chunk);
      else this.#failTooLarge();
    });
    incoming.on('error', (error) => this.#failWith(error));
    incoming.once('end', () => this.#answer(incoming));
  }

  #answer(incoming: IncomingMessage): void {
    const endedAt = performance.now();
    const headers = Object.fromEntries(
      Object.entries(incoming.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
    );
    const raw = Buffer.concat(this.#chunks);
    const body = decode(raw, headers['content-encoding'], this.#options.limits.maxBodyBytes);
    if (body === undefined) this.#failTooLarge();
    else
      this.#finish({
        status: incoming.statusCode ?? 0,
        headers,
        body: body.toString('utf8'),
        firstByteMs: (this.#firstByteAt ?? endedAt) - this.#sentAt,
        totalMs: endedAt - this.#sentAt,
      });
    // The server answered before it had read the whole request; the rest need not be sent.
    if (this.#outgoing?.writableFinished === false) this.#outgoing.destroy();
  }

  #timeOut(): void {
    const { timeoutMs } = this.#options.limits;
    const within = `within ${timeoutMs} ms`;
    if (this.#phase === 'resolve') this.#fail('dns', `the name ${this.#host} was not resolved ${within}`);
    else if (this.#phase === 'connect')
      this.#fail('connect', `no TCP connection to ${this.#address} ${within}`);
    else if (this.#phase === 'tls') this.#fail('tls', `no TLS handshake with ${this.#address} ${within}`);
    else if (this.#phase === 'wait') this.#fail('timeout', `no answer from ${this.#address} ${within}`);
    else {
      const got = `${this.#bodyBytes} bytes of its body had come`;
      this.#fail('timeout', `the answer of ${this.#address} did not end ${within}; ${got}`);
    }
  }

  #failTooLarge(): void {
    const limit = `${this.#options.limits.maxBodyBytes} bytes`;
    this.#fail('too_large', `the body of the answer is larger than ${limit} and was cut off there`);
  }

  #failWith(error: Error): void {
    // Once settled, closing the connection is not a failure.
    if (this.#settle === undefined || this.#answerWithForbiddenBody(error)) return;
    const place = { host: this.#host, address: this.#address, isTls: this.#url.protocol === 'https:' };
    const { failure, message } = toHttpFailure(error, this.#phase, place, {
      bodyBytes: this.#bodyBytes,
      maxHeaderBytes: MAX_HEADER_BYTES,
    });
    if (this.#outgoing?.reusedSocket)
      this.wasStale ||= this.#firstByteAt === undefined ? failure === 'reset' : failure === 'not_http';
    this.#fail(failure, message);
  }

  /** Handles a 204 or 304 with a body: the parser takes the body for the next answer, and it is not HTTP. */
  #answerWithForbiddenBody(error: Error & { code?: string; rawPacket?: Buffer }): boolean {
    const incoming = this.#incoming;
    if (incoming === undefined || ![204, 304].includes(incoming.statusCode ?? 0)) return false;
    if (error.code?.startsWith('HPE_') !== true) return false;
    const packet = error.rawPacket ?? Buffer.alloc(0);
    const begin = packet.indexOf('\r\n\r\n');
    this.#chunks = [packet.subarray(begin === -1 ? 0 : begin + 4)];
    this.#answer(incoming);
    this.#outgoing?.destroy();
    return true;
  }

  #fail(failure: FailureKind, message: string): void {
    this.#finish({ failure, message });
    this.#outgoing?.destroy();
  }

  #finish(outcome: HttpAnswer | ExchangeFailure): void {
    clearTimeout(this.#timer);
    for (const signal of [this.#options.closing, this.#options.limits.signal])
      signal?.removeEventListener('abort', this.#interrupt);
    this.#settle?.({ ...outcome, ...(this.#tlsKey !== undefined && { tlsKey: this.#tlsKey }) });
    this.#settle = undefined;
    this.#chunks = [];
  }

  get #host(): string {
    return this.#url.hostname.replace(/^\[|\]$/g, '');
  }

  get #address(): string {
    const port = this.#url.port === '' ? (this.#url.protocol === 'https:' ? '443' : '80') : this.#url.port;
    return `${this.#url.hostname}:${port}`;
  }
}

/** The path as written (`/a/../b`, `%2e`), if HTTP can carry it unchanged. */
function pathOf(url: string): string {
  const written = /^[a-z]+:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1] ?? '';
  if (/^\/[\x21-\x7e]*$/.test(written)) return written;
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
}

const decoders: Readonly<Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Buffer>> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
};

/** The body as it was before its encoding. Undefined if that size exceeds `maxBytes`. */
export function decode(bytes: Buffer, encoding: string | undefined, maxBytes: number): Buffer | undefined {
  const decoder = encoding === undefined ? undefined : decoders[encoding.trim().toLowerCase()];
  if (decoder === undefined || bytes.length === 0) return bytes;
  try {
    return decoder(bytes, { maxOutputLength: Math.max(1, maxBytes) });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? undefined : bytes;
  }
}
