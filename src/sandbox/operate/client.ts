import type { AnyOperation as MarketplaceOperation } from '../../marketplace/operate/operations.ts';
import type {
  AnyOperation as ProviderOperation,
  commands as providerCommands,
} from '../../orchestrator/operate/operations.ts';

interface Performed {
  name: string;
  perform: (...given: never[]) => Promise<unknown>;
}

/** One call for each operation, by its `operationId`. The input has the fields of its path and of its query or body. */
type CallsOf<Operation extends Performed> = {
  [O in Operation as O['name']]: (
    ...input: Record<never, never> extends InputOf<O> ? [input?: InputOf<O>] : [input: InputOf<O>]
  ) => ReturnType<O['perform']>;
};
type InputOf<O extends Performed> = Parameters<O['perform']>[2];

/** The operator API of a provider of the sandbox. */
export type ProviderOperator = CallsOf<ProviderOperation | (typeof providerCommands)[number]>;
/** The operator API of the marketplace of the sandbox. */
export type MarketplaceOperator = CallsOf<MarketplaceOperation>;

type Send = (method: string, path: string, body?: unknown) => Promise<unknown>;

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>;
}

/**
 * Creates the client of an operator API. Its calls are read from the API's document. `send` takes paths below that of
 * the server.
 */
export function createOperatorClient<Calls>(send: Send): Calls {
  let routes: Promise<ReadonlyMap<string, { method: string; path: string }>> | undefined;
  async function call(name: string, input: Record<string, unknown> = {}): Promise<unknown> {
    routes ??= readRoutes(send);
    const route = (await routes).get(name);
    if (route === undefined) throw new Error(`The operator API has no ${name}.`);
    const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
    const path = route.path.replace(/\{([^}]+)\}/g, (_whole, parameter: string) => {
      const value = rest.get(parameter);
      rest.delete(parameter);
      return encodeURIComponent(String(value));
    });
    const fields = Object.fromEntries(rest);
    if (route.method === 'POST') return send('POST', path, fields);
    const query = new URLSearchParams(fields as Record<string, string>);
    return send('GET', query.size === 0 ? path : `${path}?${query}`);
  }
  return new Proxy({} as Calls & object, {
    // `await` asks each object for `then`: with one, a client would be taken for a promise.
    get: (_target, name) =>
      typeof name === 'symbol' || name === 'then' ? undefined : (input?: object) => call(name, { ...input }),
  });
}

async function readRoutes(send: Send) {
  const { paths } = (await send('GET', '/operator/openapi.json')) as Document;
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) =>
        [operationId, { method: method.toUpperCase(), path: `/operator/v1${path}` }] as const,
    ),
  );
  return new Map(routes);
}
