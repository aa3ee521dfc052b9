import { nextTurn } from '../../ports/clock.ts';
import { Journal } from '../journal/journal.ts';
import { Credentials } from './credentials.ts';
import { ContractJudge, type RecordedExchange } from './violations.ts';

const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** Headers of a single connection, not of the message. */
const HOP_BY_HOP = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Headers of an answer that are not forwarded, because its body is forwarded decoded. */
const OF_THE_CODING = ['content-encoding', 'content-length', 'transfer-encoding', 'connection', 'keep-alive'];

export interface RecorderDeps {
  /** Base URL of a provider, with the version prefix of its paths. */
  target: URL;
  now: () => number;
  fetch: (request: Request) => Promise<Response>;
}

/** Forwards requests to a real provider, and records both sides. */
export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #journal: Journal;
  readonly #credentials = new Credentials();
  /** Bodies of answers that are still being read. */
  readonly #reading = new Set<Promise<void>>();

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
    this.#journal = new Journal(deps.now, { maxBodyBytes: MAX_BODY_BYTES });
  }

  /** Handles a client's request. Its path begins with /v1. */
  async fetch(request: Request): Promise<Response> {
    const exchange = { provider: 'recorded', request };
    return this.#journal
      .layer(exchange, (sent) => this.#forward(sent))
      .catch((error) =>
        Response.json(
          { error: { code: 'unavailable', message: `The target could not be reached: ${reasonOf(error)}` } },
          { status: 502 },
        ),
      );
  }

  async #forward(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const { target, fetch } = this.#deps;
    const url = new URL(target);
    url.pathname = target.pathname.replace(/\/$/, '') + pathname.replace(/^\/v1(?=\/|$)/, '');
    url.search = search;
    const headers = new Headers(request.headers);
    for (const name of HOP_BY_HOP) headers.delete(name);
    const body = request.body === null ? undefined : await request.arrayBuffer();
    this.#credentials.noteHeaders(request.headers);
    this.#credentials.noteUrl(request.url);
    if (body !== undefined) this.#credentials.noteText(new TextDecoder().decode(body));
    const sent = new Request(url, {
      method: request.method,
      headers,
      redirect: 'manual',
      ...(body && { body }),
    });
    const reply = await fetch(sent);
    this.#credentials.noteHeaders(reply.headers);
    this.#noteBody(reply.clone());
    const kept = new Headers(reply.headers);
    for (const name of OF_THE_CODING) kept.delete(name);
    return new Response(reply.body, { status: reply.status, headers: kept });
  }

  #noteBody(reply: Response): void {
    const reading = reply
      .text()
      .then((text) => this.#credentials.noteText(text))
      // Broken off: the journal keeps that.
      .catch(() => undefined)
      .finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  /** All exchanges so far, each checked against the contract, without credentials. */
  async exchanges(): Promise<RecordedExchange[]> {
    // An answer that is still coming is not waited for.
    await Promise.race([Promise.all(this.#reading), nextTurn()]);
    const judge = new ContractJudge();
    const entries = await this.#journal.entries();
    const [first] = entries;
    return entries.map((entry) => {
      const { method, path, request, status, response } = entry;
      const violations = judge.violationsOf(entry);
      return {
        at_ms: Date.parse(entry.at) - Date.parse(first?.at ?? entry.at),
        request: {
          method,
          path: this.#credentials.redactPath(path),
          ...(request.body !== undefined && { body: this.#credentials.redact(request.body) }),
        },
        response: {
          status,
          headers: this.#credentials.redact(response.headers),
          ...(response.body !== undefined && { body: this.#credentials.redact(response.body) }),
        },
        ...(violations.length > 0 && { violations: this.#credentials.redact(violations) }),
      };
    });
  }
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}
