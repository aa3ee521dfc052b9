import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { type HttpTransportOptions, httpTransport } from './http-transport.ts';
import type { HttpAnswer, HttpFailure, SendLimits, Transport } from './transport.ts';

export const limits: SendLimits = { timeoutMs: 60_000, maxBodyBytes: 100_000 };
export const hasty: SendLimits = { timeoutMs: 500, maxBodyBytes: 100_000 };

const servers: Server[] = [];
const transports: Transport[] = [];

/** Call it after each test. */
export async function closeAll(): Promise<void> {
  await Promise.all(transports.splice(0).map((transport) => transport.close()));
  // Ends only when each connection has ended. A connection that a closed transport leaks makes the test time out.
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
}

export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

export async function serve(answer: RequestListener): Promise<{ url: string; server: HttpServer }> {
  const server = createHttpServer(answer);
  return { url: `http://127.0.0.1:${await listen(server)}`, server };
}

/** A raw TCP server. Errors of its sockets are ignored. */
export async function serveRaw(talk: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    talk(socket);
    // The input is read, so that the end of the connection is detected.
    socket.resume();
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

export function newTransport(options?: HttpTransportOptions): Transport {
  const transport = httpTransport(options);
  transports.push(transport);
  return transport;
}

/** Uses a new transport unless one is given. */
export function get(
  url: string,
  bounds = limits,
  transport = newTransport(),
): Promise<HttpAnswer | HttpFailure> {
  return transport.send({ method: 'GET', url, headers: {} }, bounds);
}

export function expectAnswer(outcome: HttpAnswer | HttpFailure): HttpAnswer {
  if ('failure' in outcome) throw new Error(`${outcome.failure}: ${outcome.message}`);
  return outcome;
}

/** Closes the last server early: its port then refuses connections. */
export async function closeLast(): Promise<void> {
  const server = servers.pop();
  await new Promise((resolve) => server?.close(resolve));
}
