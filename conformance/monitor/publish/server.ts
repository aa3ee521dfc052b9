import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { POLICY } from '../../report/html/html.ts';
import type { Certificate } from '../certificate/certificate.ts';
import { filesOf, type PublishedFile } from './files.ts';
import { type MonitorState, toMetrics } from './metrics.ts';

const TIMEOUT_MS = 10_000;

/** What the server shows, at the time of a request. */
export interface Shown {
  certificates(): readonly Certificate[];
  state(): Promise<MonitorState>;
}

/** Serves the page, the certificates, badges, metrics and `/healthz`. Returns the port that it listens on. */
export async function serve(listen: string, shown: Shown): Promise<{ port: number; close(): Promise<void> }> {
  const at = listen.lastIndexOf(':');
  const server = createServer(
    { requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS },
    (request, response) => {
      answer(
        request.method ?? '',
        new URL(request.url ?? '/', 'http://monitor').pathname,
        shown,
        response,
      ).catch(() => send(response, 500, 'text/plain', 'the state cannot be read\n'));
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(listen.slice(at + 1)), listen.slice(0, at).replace(/^\[|\]$/g, ''), resolve);
  });
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

async function answer(method: string, path: string, shown: Shown, response: ServerResponse): Promise<void> {
  if (method !== 'GET' && method !== 'HEAD')
    return send(response, 405, 'text/plain', 'only GET is answered\n');
  if (path === '/healthz') return send(response, 200, 'text/plain', 'ok\n');
  const certificates = shown.certificates();
  if (path === '/metrics')
    return send(response, 200, 'text/plain; version=0.0.4', toMetrics(certificates, await shown.state()));
  const wanted = path === '/' ? 'index.html' : path.slice(1);
  const file = filesOf(certificates).find((each: PublishedFile) => each.path === wanted);
  if (file === undefined) return send(response, 404, 'text/plain', 'there is nothing here\n');
  send(response, 200, file.type, file.text);
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
  response.end(text);
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
