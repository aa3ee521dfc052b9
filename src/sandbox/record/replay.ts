import { tryDecodeURIComponent } from 'hono/utils/url';
import { parseJson } from '../../contract/parse-json.ts';
import { editDistance } from '../options.ts';
import type { RecordedExchange } from './violations.ts';

export interface ReplayOptions {
  /** Whether the recording starts again when a request has no answer left. Default: no. */
  loop?: boolean | undefined;
  /** Called with each request that has no answer, as a sentence. */
  unanswered?: (sentence: string) => void;
}

/**
 * A provider that gives recorded answers. Exchanges that match a request equally are used once, in order. A read that
 * is repeated more often than it was recorded gets the last answer again.
 */
export class Replay {
  readonly #all: readonly RecordedExchange[];
  readonly #options: ReplayOptions;
  #left: RecordedExchange[] = [];
  readonly #last = new Map<string, RecordedExchange>();

  constructor(exchanges: readonly RecordedExchange[], options: ReplayOptions = {}) {
    this.#all = exchanges;
    this.#options = options;
    this.rewind();
  }

  /** Starts the recording again. */
  rewind(): void {
    this.#left = [...this.#all];
    this.#last.clear();
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const asked = { method: request.method, path: pathname + search, body: await bodyOf(request) };
    const exchange = this.#take(asked) ?? this.#last.get(keyOf(asked)) ?? this.#again(asked);
    if (exchange === undefined) return this.#notRecorded(asked);
    if (asked.method === 'GET') this.#last.set(keyOf(asked), exchange);
    const { status, headers, body } = exchange.response;
    if (status === null) throw new Error('the provider was not reached when this was recorded');
    return new Response(body === undefined ? null : textOf(body), { status, headers });
  }

  /** Takes the first exchange with the same body, else the first with the same path. */
  #take(asked: RecordedExchange['request']): RecordedExchange | undefined {
    const fitting = this.#left.filter(({ request }) => isSameRoute(request, asked));
    const body = JSON.stringify(asked.body);
    const found = fitting.find(({ request }) => JSON.stringify(request.body) === body) ?? fitting[0];
    if (found !== undefined) this.#left.splice(this.#left.indexOf(found), 1);
    return found;
  }

  #again(asked: RecordedExchange['request']): RecordedExchange | undefined {
    if (this.#options.loop !== true) return undefined;
    this.rewind();
    return this.#take(asked);
  }

  #notRecorded({ method, path }: RecordedExchange['request']): Response {
    const [nearest] = this.#all
      .map(({ request }) => ({
        request,
        distance: editDistance(request.path, path) + (request.method === method ? 0 : 1),
      }))
      .sort((a, b) => a.distance - b.distance);
    const message = `The recording has no answer to ${method} ${path}; ${hintOf(nearest)}.`;
    this.#options.unanswered?.(message);
    return Response.json({ error: { code: 'not_recorded', message } }, { status: 501 });
  }
}

function hintOf(nearest: { request: RecordedExchange['request']; distance: number } | undefined): string {
  if (nearest === undefined) return 'it is empty';
  if (nearest.distance === 0) return 'all that it has were given: with --loop it starts again';
  return `the nearest recorded request is ${nearest.request.method} ${nearest.request.path}`;
}

/** What stands for a credential in a recording stands for any text. */
function isSameRoute(recorded: RecordedExchange['request'], asked: RecordedExchange['request']): boolean {
  const [known, given] = [keyOf(recorded), keyOf(asked)];
  if (known === given) return true;
  const parts = tryDecodeURIComponent(known).split(/\[(?:redacted: [^\]]*|hidden)\]/);
  if (parts.length === 1) return false;
  return new RegExp(
    `^${parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('.*')}$`,
  ).test(tryDecodeURIComponent(given));
}

async function bodyOf(request: Request): Promise<unknown> {
  const text = request.body === null ? '' : await request.text();
  return text === '' ? undefined : (parseJson(text) ?? text);
}

/** Returns the key of a route. The order of query parameters does not matter. */
function keyOf({ method, path }: { method: string; path: string }): string {
  const url = new URL(path, 'http://recorded');
  url.searchParams.sort();
  return `${method} ${url.pathname}?${url.searchParams}`;
}

function textOf(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
