import type { Layer } from './provider.ts';
import { ORIGIN } from './sandbox.ts';

interface Server {
  fetch(request: Request): Response | Promise<Response>;
}

interface Parts {
  /** Providers by name. More may be added later. */
  providers: ReadonlyMap<string, { readonly app: Server }>;
  /** Layers, outermost first. */
  layers: readonly Layer[];
  accountOf(key: string): string | undefined;
}

const PROVIDER = /^\/providers\/([^/]+)(\/.*)$/;
const MARKETPLACE = 'marketplace';

/** Routes a request by its path to a server, through the layers. */
export function createRouter({ providers, layers, accountOf }: Parts) {
  let marketplace: Server | undefined;
  const addresses = new Addresses();

  /** Sends a request with the server's own path. */
  async function send(provider: string, request: Request): Promise<Response> {
    const server = provider === MARKETPLACE ? marketplace : providers.get(provider)?.app;
    if (server === undefined) return notFound(`There is no provider ${provider} in this sandbox.`);
    const key = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1];
    const account = key === undefined ? undefined : accountOf(key);
    const about = { provider, ...(account !== undefined && { account }) };
    const pass = (index: number, passed: Request): Promise<Response> => {
      const layer = layers[index];
      if (layer === undefined) return Promise.resolve(server.fetch(passed));
      return layer({ ...about, request: passed }, (next) => pass(index + 1, next));
    };
    if (provider === MARKETPLACE) request.headers.set('x-forwarded-for', addresses.of(account));
    return pass(0, request);
  }

  return {
    send,
    serveMarketplace(server: Server): void {
      marketplace = server;
    },
    /** Sends a request with a path of the sandbox. */
    async route(request: Request): Promise<Response> {
      const { pathname, search } = new URL(request.url);
      const [, provider, path] = PROVIDER.exec(pathname) ?? [];
      if (provider !== undefined && path !== undefined)
        return send(provider, new Request(`${ORIGIN}${path}${search}`, request));
      if (marketplace !== undefined && /^\/api(\/|$)/.test(pathname))
        return send(MARKETPLACE, new Request(`${ORIGIN}${pathname}${search}`, request));
      return notFound(
        'Nothing is served here: the providers are at /providers/NAME/v1, and the marketplace, if present, at /api.',
      );
    },
  };
}

/** Gives each account its own address, so that one account does not use up another's limits. */
class Addresses {
  readonly #known = new Map<string | undefined, string>();

  of(account: string | undefined): string {
    const number = this.#known.size + 1;
    const known = this.#known.get(account) ?? `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
    this.#known.set(account, known);
    return known;
  }
}

function notFound(message: string): Response {
  return Response.json({ error: { code: 'not_found', message } }, { status: 404 });
}
