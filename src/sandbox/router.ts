import type { Layer } from './provider.ts';
import { ORIGIN } from './sandbox.ts';

interface Server {
  fetch(request: Request): Response | Promise<Response>;
}

interface Parts {
  /** Each with the name that an exchange has for it. */
  servers: ReadonlyMap<string, Server>;
  /** The outermost first. */
  layers: readonly Layer[];
  /** Of the key that a request carries. */
  accountOf(key: string): string | undefined;
}

const PROVIDER = /^\/providers\/([^/]+)(\/.*)$/;

/** Finds the server of a path, and passes the request to it through the layers. */
export function createRouter({ servers, layers, accountOf }: Parts) {
  /** Sends a request with the path of the server itself. */
  async function send(provider: string, request: Request): Promise<Response> {
    const server = servers.get(provider);
    if (server === undefined) return notFound(`There is no provider ${provider} in this sandbox.`);
    const key = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1];
    const account = key === undefined ? undefined : accountOf(key);
    const about = { provider, ...(account !== undefined && { account }) };
    const pass = (index: number, passed: Request): Promise<Response> => {
      const layer = layers[index];
      if (layer === undefined) return Promise.resolve(server.fetch(passed));
      return layer({ ...about, request: passed }, (next) => pass(index + 1, next));
    };
    return pass(0, request);
  }

  return {
    send,
    /** Sends a request with a path of the sandbox. */
    async route(request: Request): Promise<Response> {
      const { pathname, search } = new URL(request.url);
      const [, provider, path] = PROVIDER.exec(pathname) ?? [];
      if (provider === undefined || path === undefined)
        return notFound('Nothing is here: the providers are at /providers/NAME/v1.');
      return send(provider, new Request(`${ORIGIN}${path}${search}`, request));
    },
  };
}

function notFound(message: string): Response {
  return Response.json({ error: { code: 'not_found', message } }, { status: 404 });
}
