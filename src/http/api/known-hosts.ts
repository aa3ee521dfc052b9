import { isIP } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import type { Log } from '../../ports/log.ts';
import { clientOf } from '../wire/client-address.ts';
import type { NodeBindings } from './request-context.ts';

export interface KnownHosts {
  /** Accepted host names, besides addresses and localhost. */
  hosts: readonly string[];
  /** What adds a name, such as `server.admin.hosts`. */
  setting: string;
  log: Pick<Log, 'info'>;
  /** Number of proxies before this server, each of which appends to X-Forwarded-For. With 0, the header is not read. */
  trustedProxies: number;
}

/**
 * Answers 421 for a host that is not an address, localhost or one of `hosts`. With DNS rebinding, another site's page
 * can point its own name to this listener and so have its origin, but its requests carry that name.
 */
export function knownHostsOnly({ hosts, setting, log, trustedProxies }: KnownHosts): MiddlewareHandler {
  const known = new Set(['localhost', ...hosts.filter((host) => isIP(host) === 0)].map(toName));
  return async (context, next) => {
    const { hostname } = new URL(context.req.url);
    if (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0 || known.has(toName(hostname))) return next();
    const { method, path } = context.req;
    const { incoming } = (context.env ?? {}) as NodeBindings;
    const forwarded = context.req.header('x-forwarded-for');
    const { address } = clientOf(incoming?.socket.remoteAddress, forwarded, trustedProxies);
    log.info({ method, path: path.slice(0, 200), status: 421, address, host: hostname }, 'request refused');
    const message = `This listener does not serve the host name ${hostname}. It serves IP addresses and: ${[...known].join(', ')}. To add a name, set ${setting}.`;
    return context.json({ error: { code: 'misdirected_request', message } }, 421, {
      'X-Content-Type-Options': 'nosniff',
    });
  };
}

/** Host names are case-insensitive, with or without a trailing dot. */
function toName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}
