import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface Load {
  port: number;
  /** Sent one after another, and repeated from the start. */
  requests: readonly Buffer[];
  count: number;
  connections: number;
  expectedStatus: number;
  /** Called with the time of each reply. */
  onReply?: (ms: number) => void;
}

/**
 * Sends `count` requests over keep-alive connections. Each connection waits for a reply before its next request.
 * @throws {Error} unless every reply has the expected status.
 */
export async function sendLoad(load: Load): Promise<void> {
  let sent = 0;
  const next = (): Buffer | undefined =>
    sent < load.count ? load.requests[sent++ % load.requests.length] : undefined;
  const sockets = await Promise.all(Array.from({ length: load.connections }, () => open(load.port)));
  try {
    await Promise.all(sockets.map((socket) => converse(socket, next, load)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
}

/** One request in wire format. */
export function toRequest(id: string, apiKey: string, headers: Record<string, string> = {}): Buffer {
  const lines = [
    `GET /v1/instances/${id} HTTP/1.1`,
    'Host: orchestrator.example',
    `Authorization: Bearer ${apiKey}`,
    'Accept: application/json',
    'User-Agent: marketplace/1.0',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
}

/** The whole of one reply, as text. */
export async function fetchReply(port: number, request: Buffer): Promise<string> {
  const socket = await open(port);
  try {
    socket.write(request);
    let text = '';
    for await (const chunk of socket) {
      text += chunk.toString('latin1');
      if (lengthOf(text) === text.length) break;
    }
    return text;
  } finally {
    socket.destroy();
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

function converse(
  socket: Socket,
  next: () => Buffer | undefined,
  { expectedStatus: status, onReply }: Pick<Load, 'expectedStatus' | 'onReply'>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const expected = `HTTP/1.1 ${status} `;
  let reply = '';
  let sentAt = 0;
  const send = (): void => {
    const request = next();
    if (request === undefined) resolve();
    else {
      sentAt = performance.now();
      socket.write(request);
    }
  };
  socket.on('data', (chunk) => {
    reply += chunk.toString('latin1');
    if (reply.length !== lengthOf(reply)) return;
    if (!reply.startsWith(expected)) return reject(new Error(`expected ${status}: ${reply.slice(0, 300)}`));
    reply = '';
    onReply?.(performance.now() - sentAt);
    send();
  });
  socket.on('close', () => reject(new Error('a server closed the connection')));
  socket.on('error', reject);
  send();
  return promise;
}

/** The length of the reply that begins with `text`; -1: its head is not complete. */
function lengthOf(text: string): number {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd === -1) return -1;
  const length = /\r\nContent-Length: (\d+)/i.exec(text)?.[1] ?? '0';
  return headEnd + 4 + Number(length);
}
