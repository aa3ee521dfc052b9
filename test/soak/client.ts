import { assertKeepsContract } from '../support/http/contract.ts';
import { sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import { API_KEY, type Replica } from './processes.ts';

export interface Reply {
  replica: string;
  status: number;
  body: Record<string, unknown>;
  /** When the request was sent and when all of the reply was there, milliseconds since the epoch. */
  sentAt: number;
  receivedAt: number;
  /** An earlier attempt had no clear reply: it may have been carried out, or may still be. */
  isRepeated: boolean;
}

export interface Ask {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** A server that is stopped does not answer, and its client does not wait for ever. */
const TIMEOUT_MS = 4_000;
const PAUSE_MS = 100;

/** A marketplace's client of all replicas at once. */
export class SoakClient {
  readonly #replicas: readonly Replica[];
  readonly #journal: Journal;

  constructor(replicas: readonly Replica[], journal: Journal) {
    this.#replicas = replicas;
    this.#journal = journal;
  }

  /** One request to one replica; undefined: there was no reply, or only a part of one. */
  async send(replica: Replica, { method, path, body, headers = {} }: Ask): Promise<Reply | undefined> {
    const kind = `${method} ${path.replace(/(inst|vol)-[0-9a-f]+/, '{id}')}`;
    const sentAt = Date.now();
    const exchange = await this.#exchange(replica, { method, path, body, headers }).catch(() => undefined);
    this.#journal.reply(kind, exchange?.response.status ?? 'lost');
    if (exchange === undefined) return undefined;
    const { response, text } = exchange;
    const { status } = response;
    try {
      const contentType = response.headers.get('content-type');
      assertKeepsContract({ method, path: `/v1${path}`, status, contentType, body: text });
    } catch (error) {
      this.#journal.lose('a reply breaks the contract', {
        replica: replica.name,
        kind,
        text,
        error: String(error),
      });
    }
    if (status === 401 || (status >= 500 && status !== 503))
      this.#journal.lose(`an answer ${status}`, { replica: replica.name, method, path, text });
    const reply = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
    return { replica: replica.name, status, body: reply, sentAt, receivedAt: Date.now(), isRepeated: false };
  }

  /** Asks one replica after the other until one answers other than 503; undefined: none did in time. */
  async insist(ask: Ask, first: Replica, patienceMs = 15_000): Promise<Reply | undefined> {
    const deadline = Date.now() + patienceMs;
    let index = this.#replicas.indexOf(first);
    let isRepeated = false;
    while (Date.now() < deadline) {
      const replica = this.#replicas[index++ % this.#replicas.length] ?? first;
      const reply = await this.send(replica, ask);
      if (reply !== undefined && reply.status !== 503) return { ...reply, isRepeated };
      isRepeated = true;
      await sleep(PAUSE_MS);
    }
    return undefined;
  }

  async #exchange({ baseUrl }: Replica, { method, path, body, headers }: Ask) {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${API_KEY}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { response, text: await response.text() };
  }
}
