import type { Socket } from 'node:net';
import { MARKETPLACE } from './options.ts';
import type { Layer, Server } from './provider.ts';
import { ORIGIN } from './sandbox.ts';

interface Parts {
  /** Providers by name. More may be added later. */
  providers: ReadonlyMap<string, { readonly app: Server }>;
  /** Layers, outermost first. */
  layers: readonly Layer[];
  accountOf(provider: string, request: Request): Promise<string | undefined>;
}

/** The connection of a request from outside this process. */
export type ClientSocket = Pick<Socket, 'remoteAddress'>;

/** The address of a client in process. */
const IN_PROCESS = '10.0.0.1';

const PROVIDER = /^\/providers\/([^/]+)(\/.*)$/;

/** Routes a request by its path to a server, through the layers. */
export function createRouter({ providers, layers, accountOf }: Parts) {
  let marketplace: Server | undefined;
  /** Kept-alive connections in process: a request takes an idle one of its client, or opens one. */
  const idle = new Map<string, object[]>();

  /** Sends a request with the server's own path. Without a `socket`, it goes over a connection in process. */
  async function send(provider: string, request: Request, socket?: ClientSocket): Promise<Response> {
    const server = provider === MARKETPLACE ? marketplace : providers.get(provider)?.app;
    if (server === undefined) return notFound(`There is no provider ${provider} in this sandbox.`);
    const account = await accountOf(provider, request);
    const client = `${provider} ${account}`;
    const connection = socket ?? idle.get(client)?.pop() ?? {};
    const about = { provider, connection, account };
    const pass = (index: number, passed: Request): Promise<Response> => {
      const layer = layers[index];
      if (layer === undefined) return Promise.resolve(server.fetch(passed));
      return layer({ ...about, request: passed }, (next) => pass(index + 1, next));
    };
    request.headers.set('x-forwarded-for', socket?.remoteAddress ?? IN_PROCESS);
    const response = await pass(0, request);
    // A request that fails ends its connection.
    if (socket === undefined) idle.set(client, [...(idle.get(client) ?? []), connection]);
    return response;
  }

  return {
    send,
    serveMarketplace(server: Server): void {
      marketplace = server;
    },
    /** Sends a request with a path of the sandbox. */
    async route(request: Request, socket?: ClientSocket): Promise<Response> {
      const { pathname, search } = new URL(request.url);
      const [, provider, path] = PROVIDER.exec(pathname) ?? [];
      if (provider !== undefined && path !== undefined)
        return send(provider, new Request(`${ORIGIN}${path}${search}`, request), socket);
      if (marketplace !== undefined && /^\/api(\/|$)/.test(pathname))
        return send(MARKETPLACE, new Request(`${ORIGIN}${pathname}${search}`, request), socket);
      return notFound(
        'Nothing is served here: the providers are at /providers/NAME/v1, and the marketplace, if present, at /api.',
      );
    },
  };
}

export function notFound(message: string): Response {
  return Response.json({ error: { code: 'not_found', message } }, { status: 404 });
}
