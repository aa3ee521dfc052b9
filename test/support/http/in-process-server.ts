import { Agent, type IncomingMessage, type RequestListener } from 'node:http';
import supertest from 'supertest';
import type { ServerOptions } from '../../../src/http/wire/server.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { startServer } from './wire.ts';

export interface InProcessRequest {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer | undefined;
}

export interface InProcessServer {
  /** Sends a request to the server with supertest. Rejects if the connection breaks. */
  fetch(path: string, request?: InProcessRequest): Promise<Response>;
  close(): Promise<void>;
}

const NO_BODY = new Set([204, 304]);
/** Real time, also where the server's own clock stands still. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Below the accept backlog of a listening socket (511): connections beyond it may be reset. */
const MAX_SOCKETS = 400;

/**
 * Serves a listener behind the server of production, on a free port that it takes with the first request. All requests
 * share the connections of one agent. A virtual clock stands still while bytes are between client and server: a
 * request takes as much of its time as the server takes.
 */
export function serveInProcess(
  listener: RequestListener,
  refuse: ServerOptions['refuse'],
  clock: Clock,
): InProcessServer {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
  const transit = countTransits(clock);
  let listening: ReturnType<typeof listen> | undefined;

  async function listen() {
    const counting: RequestListener = (request, response) => {
      transit.end();
      response.once('close', transit.begin);
      return listener(request, response);
    };
    const options = { requestTimeoutMs: REQUEST_TIMEOUT_MS, refuse };
    const { server, port } = await startServer({ listener: counting }, options);
    return { server, client: supertest(`http://127.0.0.1:${port}`) };
  }

  return {
    async fetch(path, { method = 'GET', headers = {}, body } = {}) {
      transit.begin();
      try {
        listening ??= listen();
        const { client } = await listening;
        const test = client[method.toLowerCase() as 'get'](path).agent(agent).set(headers).parse(readBytes);
        const reply = await (body === undefined ? test : test.serialize(asItIs).send(body));
        const bytes = reply.body instanceof Buffer ? new Uint8Array(reply.body) : null;
        return new Response(NO_BODY.has(reply.status) && bytes?.length === 0 ? null : bytes, {
          status: reply.status,
          headers: new Headers(pairsOf(reply.headers)),
        });
      } finally {
        transit.end();
      }
    },
    async close() {
      agent.destroy();
      await (await listening)?.server.close(0);
    },
  };
}

/** Holds the clock, if it is one that can be held, while more transits have begun than ended. */
function countTransits(clock: Clock & { hold?: () => () => void }): { begin(): void; end(): void } {
  let count = 0;
  let release: (() => void) | undefined;
  const change = (by: 1 | -1): void => {
    count += by;
    if (count > 0) release ??= clock.hold?.();
    else {
      release?.();
      release = undefined;
    }
  };
  return { begin: () => change(1), end: () => change(-1) };
}

const asItIs = (body: string): string => body;

/** The body as it came: what it means is for the caller to say. */
function readBytes(response: unknown, done: (error: Error | null, body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  (response as IncomingMessage)
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => done(null, Buffer.concat(chunks)));
}

function pairsOf(headers: Record<string, string | string[]>): [string, string][] {
  return Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
}
