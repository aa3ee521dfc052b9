import type { ServerProcess } from './process.ts';
import type { BaseWorld } from './world.ts';

/** A request of a client, with the label that the journal has for it. */
export interface Sent {
  label: string;
  method: string;
  path: string;
  key: string;
  body?: object | undefined;
  headers?: Record<string, string>;
  /** Whether its answer is lost on the wire. */
  isLost: boolean;
}

export interface Received {
  status: number;
  headers: Headers;
  text: string;
  body: unknown;
}

interface App {
  request(path: string, init: RequestInit): Response | Promise<Response>;
}

/** A client gives up on a request after this long. */
const PATIENCE_MS = 60_000;

/** Sends a request to a server; undefined: no answer came, and the request was applied or not. */
export async function exchange(
  { scheduler, journal }: Pick<BaseWorld, 'scheduler' | 'journal'>,
  process: ServerProcess,
  app: App,
  sent: Sent,
): Promise<Received | undefined> {
  const { label, method, path, isLost } = sent;
  journal.note(label, `${method} ${path} to ${process.name}`);
  const answer = process.reach(() => process.orDeath(() => ask(app, sent)));
  const received = await Promise.race([
    answer.catch(() => undefined),
    process.orDeath(() => scheduler.sleep(PATIENCE_MS)).catch(() => undefined),
  ]);
  scheduler.noteActivity();
  if (received === undefined || isLost) {
    journal.note(label, received === undefined ? 'has no answer' : `lost its answer ${received.status}`);
    return undefined;
  }
  journal.note(label, `${received.status} ${brief(received.body)}`);
  return received;
}

async function ask(app: App, { method, path, key, body, headers }: Sent): Promise<Received> {
  const response = await app.request(path, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text === '' ? null : (JSON.parse(text) as unknown),
  };
}

function brief(body: unknown): string {
  if (typeof body !== 'object' || body === null) return '';
  const { id, status, code, error } = body as Record<string, unknown>;
  const said = typeof error === 'object' && error !== null && 'code' in error ? error.code : error;
  return [id, status, code, said]
    .filter((part) => typeof part === 'string')
    .map((part) => part.slice(0, 60))
    .join(' ');
}
