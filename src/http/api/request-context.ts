import type { Context, Env, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SpanRecord, Tracing } from '../../ports/tracing.ts';
import { clientOf } from '../wire/client-address.ts';

/** Values that every request has before its route runs. */
export interface RequestVariables {
  requestId: string;
  /** The client's address, as logged. */
  address: string;
  /** The network that the request is counted for if its account is unknown. */
  network: string;
  /** The sender as logged, such as the account and the id of the key. Undefined if unknown. */
  who: object | undefined;
  /** The object that the request created, as all log lines name it. */
  made: object | undefined;
}

/** Properties that @hono/node-server passes with the request. */
export interface NodeBindings {
  incoming?: {
    socket: {
      remoteAddress?: string | undefined;
      readableEnded?: boolean;
      once?(event: 'end', listener: () => void): unknown;
      off?(event: 'end', listener: () => void): unknown;
    };
  };
  outgoing?: { destroy(): unknown };
}

export interface RequestEnv extends Env {
  Variables: RequestVariables;
  Bindings: NodeBindings;
}

interface RequestDeps {
  log: Log;
  clock: Clock;
  metrics: { countRequest(method: string, route: string, status: number, seconds: number): void };
  /** Number of proxies before this server, each of which appends to X-Forwarded-For. With 0, the header is not read. */
  trustedProxies: number;
  nextId: () => string;
  tracing?: Tracing | undefined;
}

interface RequestLine {
  request_id: string;
  method: string;
  path: string;
  status: number;
  /** Duration in milliseconds. */
  ms: number;
  address: string;
}

const ACCEPTED_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Gives each request an id, which its reply carries, and its client's address, and logs one line for it. Successful
 * reads are logged at debug. `begin` is called once both are known.
 */
export function requestContext<E extends RequestEnv>(
  { log, clock, metrics, trustedProxies, nextId, tracing }: RequestDeps,
  begin: (context: Context<E>, network: string) => void = () => undefined,
): MiddlewareHandler<E> {
  return async (context, next) => {
    const given = context.req.header('x-request-id');
    const requestId = given !== undefined && ACCEPTED_ID.test(given) ? given : nextId();
    context.set('requestId', requestId);
    context.header('X-Request-Id', requestId);
    const { address, network } = clientOf(
      context.env?.incoming?.socket.remoteAddress,
      context.req.header('x-forwarded-for'),
      trustedProxies,
    );
    context.set('address', address);
    context.set('network', network);
    begin(context, network);
    const startedAt = clock.now();
    await next();
    const { method, path } = context.req;
    const { status } = context.res;
    const ms = clock.now() - startedAt;
    const route = routePath(context, -1);
    metrics.countRequest(method, route === '/*' ? 'none' : route, status, ms / 1000);
    const line = {
      request_id: requestId,
      method,
      path: path.slice(0, 200),
      status,
      ms,
      address,
      ...context.get('who'),
      ...context.get('made'),
    };
    tracing?.requestEnded(requestId, toSpan(route, line, startedAt), context.req.header('traceparent'));
    if (method === 'GET' && status < 400) log.debug(line, 'request');
    else log.info(line, 'request');
  };
}

/** The span of a request. */
function toSpan(
  route: string,
  { request_id, method, path, status, ms, address, ...made }: RequestLine,
  startedAt: number,
): SpanRecord {
  const ofBerth = Object.entries(made).map(([name, value]) => [`berth.${name}`, String(value)]);
  return {
    name: route === '/*' ? method : `${method} ${route}`,
    kind: 'server',
    startedAt,
    endedAt: startedAt + ms,
    attributes: {
      'http.request.method': method,
      'http.route': route === '/*' ? undefined : route,
      'http.response.status_code': status,
      'url.path': path,
      'client.address': address,
      'berth.request_id': request_id,
      ...Object.fromEntries(ofBerth),
    },
    ...(status >= 500 && { problem: `answered with ${status}` }),
  };
}

/** Generates unique, cheap request ids: a random prefix and a counter. */
export function requestIds(random: Random): () => string {
  const prefix = random.bytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
