import { Agent } from 'undici';

export interface Sent {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | undefined;
  signal: AbortSignal;
}

export interface Answer {
  status: number;
  /** By names in lower case. */
  headers: Readonly<Record<string, string>>;
  text: string;
}

export interface Transport {
  /** @throws {Error} whose `code` shows whether a connection was made */
  send(sent: Sent): Promise<Answer>;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 3_000;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** HTTP or HTTPS. `ca`: PEM of the authorities to trust, instead of Node's. `verify`: whether certificates count. */
export function httpTransport(
  tls: { ca: string | undefined; verify: boolean },
  timeoutMs: number,
): Transport {
  const agent = new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connections: 16,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: {
      timeout: CONNECT_TIMEOUT_MS,
      rejectUnauthorized: tls.verify,
      ...(tls.ca !== undefined && { ca: tls.ca }),
    },
  });
  return {
    async send({ method, url, headers, body, signal }) {
      const { origin, pathname, search } = new URL(url);
      const request = { origin, path: `${pathname}${search}`, method, headers, signal };
      const answer = await agent.request({ ...request, ...(body !== undefined && { body }) });
      const text = await answer.body.text();
      const found = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
      return { status: answer.statusCode, headers: Object.fromEntries(found), text };
    },
    close: () => agent.destroy(),
  };
}
