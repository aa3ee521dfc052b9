import { isIP } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import type { Log } from '../../ports/log.ts';
import { clientOf } from '../wire/client-address.ts';
import type { NodeBindings } from './request-context.ts';

export interface KnownHosts {
  /** The names that are answered to, beside addresses and localhost. */
  hosts: readonly string[];
  log: Pick<Log, 'info'>;
  /** How many proxies before this server each add what they see to X-Forwarded-For; 0: the header is not read. */
  trustedProxies: number;
}

/**
 * 421 for a name that is neither an address, localhost nor one of `hosts`. A stranger's page can have its own name lead to
 * this listener (DNS rebinding), and its requests are then of the same origin as what they reach; they have that name.
 */
export function knownHostsOnly({ hosts, log, trustedProxies }: KnownHosts): MiddlewareHandler {
  const known = new Set(['localhost', ...hosts.filter((host) => isIP(host) === 0)].map(toName));
  return async (context, next) => {
    const { hostname } = new URL(context.req.url);
    if (isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0 || known.has(toName(hostname))) return next();
    const { method, path } = context.req;
    const { incoming } = (context.env ?? {}) as NodeBindings;
    const forwarded = context.req.header('x-forwarded-for');
    const { address } = clientOf(incoming?.socket.remoteAddress, forwarded, trustedProxies);
    log.info({ method, path: path.slice(0, 200), status: 421, address, host: hostname }, 'request refused');
    const message = `This listener does not answer to the name ${hostname}. It answers to IP addresses and to: ${[...known].join(', ')}. To add a name, set server.admin.hosts.`;
    return context.json({ error: { code: 'misdirected_request', message } }, 421, {
      'X-Content-Type-Options': 'nosniff',
    });
  };
}

/** Names are the same in any case, and with the dot at the end. */
function toName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}
