import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { POLICY } from '../../report/html/html.ts';
import type { Certificate } from '../certificate/certificate.ts';
import { filesOf, type PublishedFile } from './files.ts';
import { type MonitorState, toMetrics } from './metrics.ts';

const TIMEOUT_MS = 10_000;

/** What the server shows, at the time of a request. */
export interface Shown {
  certificates(): readonly Certificate[];
  state(): MonitorState;
}

interface Answer extends Omit<PublishedFile, 'path'> {
  status: number;
}

/** Serves the page, the certificates, badges, metrics and `/healthz`. Returns the port that it listens on. */
export async function serve(listen: string, shown: Shown): Promise<{ port: number; close(): Promise<void> }> {
  const at = listen.lastIndexOf(':');
  const server = createServer(
    { requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS },
    ({ method, url = '/' }, response) => {
      const { status, type, text } = answerTo(method, new URL(url, 'http://monitor').pathname, shown);
      response.writeHead(status, {
        'content-type': type,
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
      });
      response.end(text);
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(Number(listen.slice(at + 1)), listen.slice(0, at).replace(/^\[|\]$/g, ''), resolve);
  });
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

function answerTo(method: string | undefined, path: string, shown: Shown): Answer {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'only GET is answered\n');
  if (path === '/healthz') return plain(200, 'ok\n');
  try {
    const certificates = shown.certificates();
    if (path === '/metrics')
      return { ...plain(200, toMetrics(certificates, shown.state())), type: 'text/plain; version=0.0.4' };
    const wanted = path === '/' ? 'index.html' : path.slice(1);
    const file = filesOf(certificates).find((each) => each.path === wanted);
    return file === undefined ? plain(404, 'there is nothing here\n') : { ...file, status: 200 };
  } catch {
    return plain(500, 'the state cannot be read\n');
  }
}

function plain(status: number, text: string): Answer {
  return { status, type: 'text/plain', text };
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
