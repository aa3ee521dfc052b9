import { Agent, type buildConnector } from 'undici';

export interface Sent {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
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

const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** HTTP or HTTPS. `connect`: options of Node's connections, such as the authorities to trust. `connections`: null is no limit. */
export function httpTransport(
  connect: buildConnector.BuildOptions,
  timeoutMs: number,
  connections: number | null = 16,
): Transport {
  const agent = new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connections,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect,
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
