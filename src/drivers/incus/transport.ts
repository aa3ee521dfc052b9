import { createHash, X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { Agent } from 'undici';

export interface Tls {
  certificate: string;
  key: string;
  serverCertificate: string;
}

export interface Sent {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  query: Readonly<Record<string, string>>;
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  signal: AbortSignal;
}

export interface Answer {
  status: number;
  text: string;
  etag: string | undefined;
  date: string | undefined;
}

export interface Transport {
  /** @throws {Error} whose `code` shows whether a connection was made */
  send(sent: Sent): Promise<Answer>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 1_500;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** HTTP over a Unix socket, or HTTPS. */
export function httpTransport(address: string, tls: Tls | undefined, timeoutMs: number): Transport {
  const limits = {
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connections: 16,
    maxResponseSize: MAX_ANSWER_BYTES,
  };
  if (address.startsWith('unix:')) {
    const connect = { socketPath: address.slice('unix:'.length), timeout: CONNECT_TIMEOUT_MS };
    return over('http://incus', new Agent({ ...limits, connect }));
  }
  if (tls === undefined) throw new Error(`${address} needs a client certificate`);
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    cert: tls.certificate,
    key: tls.key,
    ca: tls.serverCertificate,
    checkServerIdentity: pin(tls.serverCertificate),
  };
  return over(address.replace(/\/+$/, ''), new Agent({ ...limits, connect }));
}

function over(origin: string, agent: Agent): Transport {
  return {
    async send({ method, path, query, headers, body, signal }) {
      const answer = await agent.request({
        origin,
        path,
        method,
        query,
        signal,
        headers,
        ...(body !== undefined && { body }),
      });
      const text = await answer.body.text();
      const { etag, date } = answer.headers;
      return {
        status: answer.statusCode,
        text,
        etag: typeof etag === 'string' ? etag : undefined,
        date: typeof date === 'string' ? date : undefined,
      };
    },
    close: () => agent.destroy(),
  };
}

/** Accepts only the pinned certificate: the daemon's certificate is self-signed and names no address. */
function pin(serverCertificate: string): (host: string, found: PeerCertificate) => Error | undefined {
  const expected = new X509Certificate(serverCertificate).raw;
  return (host, { raw }) => {
    if (raw.equals(expected)) return undefined;
    const shown = createHash('sha256').update(raw).digest('hex');
    return Object.assign(
      new Error(`${host} presented a certificate other than the pinned one (SHA-256 ${shown})`),
      {
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      },
    );
  };
}
