import { isIP } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import type { Log } from '../../ports/log.ts';
import { clientOf } from '../wire/client-address.ts';
import type { NodeBindings } from './request-context.ts';

/** The host name in the URL of a request of HTTP/1.0 that has no Host header. */
export const NO_HOST = 'no-host.invalid';
export const ONE_HOST = 'expected one valid Host header';

export interface KnownHosts {
  /** Accepted host names, besides addresses and localhost. */
  hosts: readonly string[];
  /** Whether requests of HTTP/1.0 without a Host header are served. Browsers send none. */
  isHostOptional?: boolean;
  /** What adds a name, such as `server.admin.hosts`. */
  setting: string;
  log: Pick<Log, 'info'>;
  /** Number of proxies before this server, each of which appends to X-Forwarded-For. With 0, the header is not read. */
  trustedProxies: number;
}

/**
 * Answers 421 for a host that is not an address, localhost or one of `hosts`. With DNS rebinding, another site's page
 * can point its own name to this listener and so have its origin, but its requests carry that name. Without a Host
 * header it is 400.
 */
export function knownHostsOnly({
  hosts,
  isHostOptional = false,
  setting,
  log,
  trustedProxies,
}: KnownHosts): MiddlewareHandler {
  const known = new Set(['localhost', ...hosts.filter((host) => isIP(host) === 0)].map(toName));
  return async (context, next) => {
    const { hostname } = new URL(context.req.url);
    const isHostless = hostname === NO_HOST && context.req.header('host') === undefined;
    if (isHostless ? isHostOptional : isAddress(hostname) || known.has(toName(hostname))) return next();
    const { status, code, message } = isHostless
      ? ({ status: 400, code: 'invalid_request', message: ONE_HOST } as const)
      : ({ status: 421, code: 'misdirected_request', message: toMessage(hostname) } as const);
    const { method, path } = context.req;
    const { incoming } = (context.env ?? {}) as NodeBindings;
    const forwarded = context.req.header('x-forwarded-for');
    const { address } = clientOf(incoming?.socket.remoteAddress, forwarded, trustedProxies);
    log.info({ method, path: path.slice(0, 200), status, address, host: hostname }, 'request refused');
    return context.json({ error: { code, message } }, status, { 'X-Content-Type-Options': 'nosniff' });
  };

  function toMessage(hostname: string): string {
    return `This listener does not serve the host name ${hostname}. It serves IP addresses and: ${[...known].join(', ')}. To add a name, set ${setting}.`;
  }
}

function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

/** Host names are case-insensitive, with or without a trailing dot. */
function toName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}
