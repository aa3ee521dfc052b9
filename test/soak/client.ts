import { assertKeepsMarketplaceContract } from '../support/http/contract.ts';
import type { Dice } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Order } from './orders.ts';
import type { Server, Team } from './setting.ts';

export interface Ask {
  team: Team;
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  body?: object;
}

export interface Answer {
  server: string;
  status: number;
  body: Record<string, unknown>;
}

/** Longer than a request may wait for a provider; a server that is stopped does not answer at all. */
const TIMEOUT_MS = 8_000;
/** A server that did not answer is left out for a while, as a load balancer does. */
const AVOID_MS = 5_000;
/** What was sent shortly before a server was stopped may not have been read either. */
const UNREAD_MS = 1_000;
/** What the house answers where it is not itself that failed. */
const EXPECTED_FAILURES = [502, 503, 504];

/** A client of all servers at once. */
export class MarketClient {
  readonly #servers: readonly Server[];
  readonly #journal: Journal;
  readonly #lost: { order: Order; server: Server; sentAt: number }[] = [];
  readonly #avoidUntil = new Map<Server, number>();

  constructor(servers: readonly Server[], journal: Journal) {
    this.#servers = servers;
    this.#journal = journal;
  }

  /**
   * Sends a request once, to a server that accepts the connection. Null: it was sent, and what came of it is not known.
   * `order` learns when a server that is stopped goes on.
   */
  async send(dice: Dice, ask: Ask, order?: Order): Promise<Answer | null> {
    const server = this.#pick(dice);
    const sentAt = Date.now();
    const kind = `${ask.method} ${ask.path.replace(/[a-z]+-[0-9a-f]{8,}/, '{id}')}`;
    try {
      const response = await fetch(`${server.baseUrl}${ask.path}`, {
        method: ask.method,
        headers: { Authorization: `Bearer ${ask.team.apiKey}`, 'Content-Type': 'application/json' },
        ...(ask.body !== undefined && { body: JSON.stringify(ask.body) }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const text = await response.text();
      this.#journal.reply(kind, response.status);
      this.#judge(server, ask, response, text);
      return { server: server.name, status: response.status, body: JSON.parse(text) };
    } catch (error) {
      this.#avoidUntil.set(server, Date.now() + AVOID_MS);
      if (isRefused(error)) return this.send(dice, ask, order);
      if (order !== undefined) this.#lost.push({ order, server, sentAt });
      this.#journal.reply(kind, 'lost');
      return null;
    }
  }

  /** To be called once a server goes on that was stopped since `from`: what was sent to it meanwhile is read only now. */
  wentOn(server: Server, from: number): void {
    const now = Date.now();
    for (const lost of this.#lost)
      if (lost.server === server && lost.sentAt >= from - UNREAD_MS) lost.order.readableAt ??= now;
  }

  #pick(dice: Dice): Server {
    const now = Date.now();
    const good = this.#servers.filter((server) => (this.#avoidUntil.get(server) ?? 0) < now);
    return dice.pick(good.length > 0 ? good : this.#servers) as Server;
  }

  #judge(server: Server, { method, path }: Ask, response: Response, text: string): void {
    const { status } = response;
    const contentType = response.headers.get('content-type');
    const details = { server: server.name, method, path, status, text };
    try {
      assertKeepsMarketplaceContract({ method, path, status, contentType, body: text });
    } catch (error) {
      this.#journal.lose('a reply breaks the contract', { ...details, error: String(error) });
    }
    if (status === 401 || (status >= 500 && !EXPECTED_FAILURES.includes(status)))
      this.#journal.lose(`an answer ${status}`, details);
  }
}

/** Whether the connection was refused, so that nothing was sent. */
function isRefused(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code === 'ECONNREFUSED';
}
