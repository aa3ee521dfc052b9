import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that came by. */
export interface PassedRequest {
  method: string;
  /** Without its query. */
  path: string;
  /** The last word of its User-Agent: what the suite sends it for. */
  step: string;
}

/** A moment of a run: a request is about to arrive at the server, or its answer at the client. */
export interface Moment {
  when: 'before' | 'after';
  method: string;
  step: string;
}

export interface KillingProxy extends AsyncDisposable {
  /** Where the client is to send to, with the server's path. */
  baseUrl: string;
  requests: readonly PassedRequest[];
  /** Ids of the volumes that were made, whether or not the client came to know. */
  volumes: ReadonlySet<string>;
  /** Calls back once, when the moment comes. The request goes no further where `act` says so. */
  arm(moment: Moment, act: () => 'cut' | 'pass'): void;
}

/** Stands between a client and a server, and sees the moment at which to act. */
export async function startKillingProxy(serverUrl: string): Promise<KillingProxy> {
  const target = new URL(serverUrl);
  const requests: PassedRequest[] = [];
  const volumes = new Set<string>();
  let armed: { moment: Moment; act: () => 'cut' | 'pass' } | undefined;

  /** Whether the request ends here. */
  const isCut = (when: Moment['when'], { method, step }: PassedRequest): boolean => {
    const { moment, act } = armed ?? {};
    if (moment === undefined || moment.when !== when || moment.method !== method || moment.step !== step)
      return false;
    armed = undefined;
    return act?.() === 'cut';
  };

  const server = createServer(async (incoming, outgoing) => {
    const body = await read(incoming);
    const passed = describe(incoming);
    requests.push(passed);
    if (isCut('before', passed)) return void outgoing.destroy();
    const answer = await forward(target, incoming, body).catch(() => undefined);
    if (answer === undefined) return void outgoing.destroy();
    if (passed.method === 'POST' && passed.path.endsWith('/volumes') && answer.status === 201)
      volumes.add(JSON.parse(answer.body.toString()).id);
    if (isCut('after', passed)) return void outgoing.destroy();
    reply(outgoing, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}${target.pathname}`,
    requests,
    volumes,
    arm: (moment, act) => {
      armed = { moment, act };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

function describe({ method = '', url = '', headers }: IncomingMessage): PassedRequest {
  const [path = ''] = url.split('?');
  return { method, path, step: headers['user-agent']?.split(' ').at(-1) ?? '' };
}

async function read(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function forward({ hostname, port }: URL, incoming: IncomingMessage, body: Buffer): Promise<Answer> {
  const { method, url: path, headers } = incoming;
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, method, path, headers, agent: false }, (response) => {
      read(response)
        .then((text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
        .catch(reject);
    });
    request.once('error', reject);
    request.end(body);
  });
}

function reply(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  const { 'transfer-encoding': _encoding, connection: _connection, ...kept } = headers;
  outgoing.writeHead(status, kept).end(body);
}
