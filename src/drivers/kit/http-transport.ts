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

/**
 * Sends requests over HTTP or HTTPS. `connect`: options of each connection, such as the authorities to trust.
 * `timeoutMs`: how long the server may send nothing; 0 for no limit. `connections`: the most to one server; null for no
 * limit.
 */
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

/** Codes of connections that were never made, so nothing was sent. */
export const NO_CONNECTION = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
] as const;

/** Whether the error, a cause of it, or one of several has one of the codes. */
export function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  if (error instanceof AggregateError) return error.errors.some((one) => hasCode(one, codes));
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return codes.has(String(code)) || (cause instanceof Error && hasCode(cause, codes));
}
