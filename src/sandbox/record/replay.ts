import { parseJson } from '../../contract/parse-json.ts';
import { editDistance } from '../options.ts';
import type { RecordedExchange } from './violations.ts';

/**
 * A provider that gives recorded answers. Exchanges that match a request equally are used once, in order. A read that
 * is repeated more often than it was recorded gets the last answer again.
 */
export class Replay {
  readonly #left: RecordedExchange[];
  readonly #last = new Map<string, RecordedExchange>();

  constructor(exchanges: readonly RecordedExchange[]) {
    this.#left = [...exchanges];
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const asked = { method: request.method, path: pathname + search, body: await bodyOf(request) };
    const index = this.#find(asked);
    const [found] = index < 0 ? [] : this.#left.splice(index, 1);
    const exchange = found ?? this.#last.get(keyOf(asked));
    if (exchange === undefined) return this.#notRecorded(asked);
    if (asked.method === 'GET') this.#last.set(keyOf(asked), exchange);
    const { status, headers, body } = exchange.response;
    if (status === null) throw new Error('the provider was not reached when this was recorded');
    return new Response(body === undefined ? null : textOf(body), { status, headers });
  }

  /**
   * Returns the index of the first exchange with the same body, else of the first with the same path. Negative if there
   * is none.
   */
  #find(asked: RecordedExchange['request']): number {
    const isSameRoute = ({ request }: RecordedExchange): boolean => keyOf(request) === keyOf(asked);
    const same = this.#left.findIndex(
      (exchange) =>
        isSameRoute(exchange) && JSON.stringify(exchange.request.body) === JSON.stringify(asked.body),
    );
    return same >= 0 ? same : this.#left.findIndex(isSameRoute);
  }

  #notRecorded({ method, path }: RecordedExchange['request']): Response {
    const [nearest] = this.#left
      .map(({ request }) => ({
        line: `${request.method} ${request.path}`,
        distance: editDistance(request.path, path) + (request.method === method ? 0 : 1),
      }))
      .sort((a, b) => a.distance - b.distance);
    const hint =
      nearest === undefined ? 'no answers are left' : `the nearest remaining request is ${nearest.line}`;
    const message = `The recording has no answer to ${method} ${path}; ${hint}.`;
    return Response.json({ error: { code: 'not_recorded', message } }, { status: 501 });
  }
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
