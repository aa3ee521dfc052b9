import { createHash, X509Certificate } from 'node:crypto';
import type { PeerCertificate } from 'node:tls';
import { httpTransport as connectTransport, type Sent as HttpSent } from '../kit/http-transport.ts';

export interface Tls {
  certificate: string;
  key: string;
  serverCertificate: string;
}

export interface Sent extends Omit<HttpSent, 'url'> {
  path: string;
  query: Readonly<Record<string, string>>;
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

/** HTTP over a Unix socket, or HTTPS. */
export function httpTransport(address: string, tls: Tls | undefined, timeoutMs: number): Transport {
  if (address.startsWith('unix:')) {
    const connect = { socketPath: address.slice('unix:'.length), timeout: CONNECT_TIMEOUT_MS };
    return over('http://incus', connectTransport(connect, timeoutMs));
  }
  if (tls === undefined) throw new Error(`${address} needs a client certificate`);
  const connect = {
    timeout: CONNECT_TIMEOUT_MS,
    cert: tls.certificate,
    key: tls.key,
    ca: tls.serverCertificate,
    checkServerIdentity: pin(tls.serverCertificate),
  };
  return over(address.replace(/\/+$/, ''), connectTransport(connect, timeoutMs));
}

function over(origin: string, transport: ReturnType<typeof connectTransport>): Transport {
  return {
    async send({ path, query, ...sent }) {
      // As the parts of a URL: a `#` or `?` in a name must not shorten the path to that of another resource.
      const url = Object.assign(new URL(origin), { pathname: path, search: new URLSearchParams(query) });
      const { status, text, headers } = await transport.send({ ...sent, url: url.href });
      return { status, text, etag: headers['etag'], date: headers['date'] };
    },
    close: () => transport.close(),
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
