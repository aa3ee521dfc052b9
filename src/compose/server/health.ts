import { get as getPlain } from 'node:http';
import { get as getTls } from 'node:https';
import type { Config } from '../../config/schema.ts';

/** Below the time limit of the image's health check. */
const SILENCE_MS = 4_000;
/** The address on which a server that listens on every address answers. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * Asks a server of this machine for `/healthz`. Its certificate is not checked: it is for the names that clients use.
 * Rejects if it does not answer 200.
 */
export function assertHealthy({
  host,
  port,
  tls,
}: Pick<Config['server'], 'host' | 'port' | 'tls'>): Promise<void> {
  const get = tls === undefined ? getPlain : getTls;
  const at = { host: LOOPBACK[host] ?? host, port, path: '/healthz', timeout: SILENCE_MS };
  return new Promise((resolve, reject) => {
    const request = get({ ...at, agent: false, rejectUnauthorized: false }, (reply) => {
      reply.resume();
      if (reply.statusCode === 200) resolve();
      else reject(new Error(`/healthz answers ${reply.statusCode}`));
    });
    request.on('timeout', () => request.destroy(new Error('it does not answer')));
    request.on('error', reject);
  });
}
