import type { Socket } from 'node:net';
import { clientOf } from '../http/wire/client-address.ts';
import { MARKETPLACE, type Ownership } from './ownership.ts';
import type { Layer, Server } from './provider.ts';
import { ORIGIN } from './sandbox.ts';

interface Parts {
  /** Providers by name. More may be added later. */
  providers: ReadonlyMap<string, { readonly app: Server }>;
  /** Layers, outermost first. */
  layers: readonly Layer[];
  ownershipOf(provider: string, request: Request): Promise<Ownership>;
}

/** The connection of a request from outside this process. */
export type ClientSocket = Pick<Socket, 'remoteAddress'>;

const PROVIDER = /^\/providers\/([^/]+)(\/.*)$/;

/** Routes a request by its path to a server, through the layers. */
export function createRouter({ providers, layers, ownershipOf }: Parts) {
  let marketplace: Server | undefined;
  const addresses = new Addresses();
  const pool = new ConnectionPool();

  /** Sends a request with the server's own path. Without a `socket`, it goes over a connection in process. */
  async function send(provider: string, request: Request, socket?: ClientSocket): Promise<Response> {
    const server = provider === MARKETPLACE ? marketplace : providers.get(provider)?.app;
    if (server === undefined) return notFound(`There is no provider ${provider} in this sandbox.`);
    const ownership = await ownershipOf(provider, request);
    const client = `${provider} ${ownership.account}`;
    const connection = socket ?? pool.take(client);
    const about = { provider, connection, ...ownership };
    const pass = (index: number, passed: Request): Promise<Response> => {
      const layer = layers[index];
      if (layer === undefined) return Promise.resolve(server.fetch(passed));
      return layer({ ...about, request: passed }, (next) => pass(index + 1, next));
    };
    request.headers.set('x-forwarded-for', addresses.of(about.account, socket));
    const response = await pass(0, request);
    // A request that fails ends its connection.
    if (socket === undefined) pool.giveBack(client, connection);
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

/** Kept-alive connections in process: a request takes an idle one of its client, or opens one. */
class ConnectionPool {
  readonly #idle = new Map<string, object[]>();

  take(client: string): object {
    return this.#idle.get(client)?.pop() ?? {};
  }

  giveBack(client: string, connection: object): void {
    const idle = this.#idle.get(client) ?? [];
    idle.push(connection);
    this.#idle.set(client, idle);
  }
}

/**
 * The addresses of clients, as a trusted proxy reports them to the servers. Requests without an account count for the
 * address of their connection, as in production. Each account has an address of its own at each of those, so that
 * tests on one machine do not use up each other's limits.
 */
class Addresses {
  readonly #known = new Map<string, string>();

  of(account: string | undefined, socket: ClientSocket | undefined): string {
    const { network } = clientOf(socket?.remoteAddress, undefined, 0);
    const client = JSON.stringify([network, account]);
    const number = this.#known.size + 1;
    const known = this.#known.get(client) ?? `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
    this.#known.set(client, known);
    return known;
  }
}

export function notFound(message: string): Response {
  return Response.json({ error: { code: 'not_found', message } }, { status: 404 });
}
