import { PATIENCE_MS } from '../time/until.ts';
import { assertKeepsContract } from './contract.ts';

export interface ClientReply {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

export interface ClientRequest {
  body?: unknown;
  headers?: Record<string, string>;
  /** Another bearer credential than the client's. */
  key?: string;
}

/** How often it is looked whether something has come, and for how long. */
export interface Pace {
  everyMs: number;
  withinMs: number;
}

export type Client = ReturnType<typeof createClient>;

/** A marketplace's client over real HTTP; every reply must keep the published contract. */
export function createClient(baseUrl: string, apiKey: string, pace?: Pace) {
  /** Rejects when there is no reply. */
  async function request(
    method: string,
    path: string,
    { body, headers = {}, key = apiKey }: ClientRequest = {},
  ): Promise<ClientReply> {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assertKeepsContract({
      method,
      path: new URL(response.url).pathname,
      status: response.status,
      contentType: response.headers.get('content-type'),
      body: text,
    });
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? {} : JSON.parse(text),
    };
  }

  return {
    request,
    /** Polls a resource until it reads one of the states; `GONE` stands for 404. */
    async waitFor(path: string, ...states: string[]): Promise<Record<string, unknown>> {
      let last = '';
      let found: Record<string, unknown> = {};
      await until(
        async () => {
          const { status, body } = await request('GET', path);
          last = status === 404 ? 'GONE' : String(body['status'] ?? status);
          found = body;
          return states.includes(last);
        },
        () => `${path} reads ${last}, not ${states.join(' or ')}: ${JSON.stringify(found)}`,
        pace,
      );
      return found;
    },
  };
}

/** Waits until a condition holds. */
export async function until(
  condition: () => Promise<boolean>,
  complaint: () => string,
  { everyMs, withinMs }: Pace = { everyMs: 10, withinMs: PATIENCE_MS },
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(complaint());
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
