import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { HeldCommand } from '../interruptions.ts';

/** Stands between one server and incusd. */
export interface RequestGate extends AsyncDisposable {
  /** For `platform.address`. */
  address: string;
  /** Called for each request that changes something. */
  handle: (command: HeldCommand) => void;
}

/** `pid`: of the server whose gate it is, as it is now. */
export async function openRequestGate(
  incusd: string,
  folder: string,
  pid: () => number | undefined,
): Promise<RequestGate> {
  const path = join(folder, `gate-${crypto.randomUUID().slice(0, 8)}`);
  const server = createServer(async (incoming, outgoing) => {
    const body = await read(incoming).catch(() => undefined);
    if (body === undefined) return;
    let answer: Answer | undefined;
    const carryOut = async (): Promise<boolean> => {
      answer = await forward(incusd, incoming, body).catch(() => undefined);
      return answer !== undefined && answer.status < 400;
    };
    const release = (): void => {
      if (answer === undefined) outgoing.destroy();
      else reply(outgoing, answer);
    };
    if (incoming.method === 'GET') return void carryOut().then(release);
    gate.handle({
      // One that was killed has closed its connection.
      get pid() {
        return incoming.socket.destroyed ? 0 : (pid() ?? 0);
      },
      name: describe(incoming, body),
      carryOut,
      release,
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const gate: RequestGate = {
    address: `unix:${path}`,
    handle: () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return gate;
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

async function read(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function forward(incusd: string, { method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request({ socketPath: incusd, method, path: url, headers, agent: false }, (response) => {
    read(response)
      .then((text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
      .catch(reject);
  });
  sent.once('error', reject);
  sent.end(body);
  return promise;
}

function reply(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  const { 'transfer-encoding': _encoding, connection: _connection, ...kept } = headers;
  outgoing.writeHead(status, kept).end(body);
}

/** Method and path, and of the body what tells it from others: the action, and what of the configuration is set. */
function describe({ method, url = '' }: IncomingMessage, body: Buffer): string {
  const path = url
    .replace(/\?.*/, '')
    .replace(/berth-(inst|vol)-[0-9a-f]{32}(-g\d+)?/g, '$1')
    .replace(/(\d+\.){3}\d+/, 'ADDRESS');
  const { action, config = {} } = body.length === 0 ? {} : JSON.parse(body.toString());
  const settings = method === 'PATCH' ? Object.entries(config as Record<string, string>) : [];
  const set = settings.map(([key, value]) => (key.endsWith('.phase') ? `${key}=${value}` : key));
  return [method, path, ...(action === undefined ? [] : [action]), ...set].join(' ');
}
