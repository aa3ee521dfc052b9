import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { isLoopback } from '../../contract/loopback.ts';
import { HttpServer, type ServerOptions } from '../../http/wire/server.ts';
import type { CertificateSeen } from '../../ports/certificates.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { systemClock } from '../../runtime/system.ts';
import { readTls, renewTls, stampOf, type TlsFlag } from './tls.ts';

/** A request that is incomplete by then is answered 408. */
const REQUEST_TIMEOUT_MS = 30_000;

type WireParts = Pick<ServerOptions, 'nextId' | 'refuse' | 'log' | 'accept'> &
  Partial<Pick<ServerOptions, 'tls'>> & { certificateSeen?: CertificateSeen | undefined };

/** Listens on the configured address. @throws {Fatal} */
export async function listen(
  config: {
    server: Pick<Config['server'], 'host' | 'port' | 'tls' | 'connections_per_address'> &
      Partial<Pick<Config['server'], 'trusted_proxies'>>;
  },
  parts: WireParts,
  listener: RequestListener,
): Promise<{ server: HttpServer; origin: string }> {
  const { host, port, tls, trusted_proxies: proxies = 0 } = config.server;
  // Behind a proxy, all connections come from the proxy's address.
  const connectionsPerAddress = proxies > 0 ? 0 : config.server.connections_per_address;
  const address = { host, port, tls };
  const { server, start } = createServer(address, '--tls', { connectionsPerAddress, ...parts }, listener);
  try {
    return { server, origin: await start() };
  } catch (error) {
    throw new Fatal(listenSentence(error as NodeJS.ErrnoException, host, port, API_FLAGS), { cause: error });
  }
}

/** Creates a server. `start` listens, keeps the certificate up to date, and returns the origin. @throws {Fatal} */
function createServer(
  { tls: files, ...address }: Pick<Config['server'], 'host' | 'port' | 'tls'>,
  flag: TlsFlag,
  { certificateSeen: seen, ...parts }: WireParts & Pick<ServerOptions, 'connectionsPerAddress'>,
  listener: RequestListener,
) {
  // The stamp is taken before the files are read, so that any later renewal is noticed.
  const stamp = files && stampOf(files);
  const tls = files && readTls(files, flag);
  const options = { ...address, tls, requestTimeoutMs: REQUEST_TIMEOUT_MS, ...parts };
  const server = new HttpServer(listener, options);
  const start = async (): Promise<string> => {
    const taken = await server.listen(options);
    if (options.tls !== undefined) seen?.({ pem: options.tls.cert.toString() });
    if (files !== undefined) {
      const { log } = parts;
      renewTls(files, server, { clock: systemClock, log, seen, flag, ...(stamp !== undefined && { stamp }) });
    }
    return `${options.tls === undefined ? 'http' : 'https'}://${urlHost(address.host)}:${taken}`;
  };
  return { server, start };
}

export interface AdminServer {
  url: string;
  /** Passes requests to `listener`. Until then, they get the server's not-ready answer. */
  serve(listener: RequestListener): void;
  close(): Promise<void>;
}

/** Time limit for a running scrape at shutdown. */
const ADMIN_DRAIN_MS = 1_000;

/**
 * Starts the admin listener. If the default port is taken, there is none: that is logged, and
 * `withoutAdmin` says what is missing and why.
 * @throws {Fatal} if a configured address is unavailable
 */
export async function listenAdmin(
  config: Pick<Config, 'server'>,
  defaultPort: number,
  parts: WireParts,
  notReady: RequestListener,
): Promise<{ admin?: AdminServer; withoutAdmin?: string }> {
  const { host, port: named, tls } = config.server.admin;
  const port = named ?? (config.server.port === 0 ? 0 : defaultPort);
  let listener = notReady;
  const { server, start } = createServer({ host, port, tls }, '--admin-tls', parts, (request, response) =>
    listener(request, response),
  );
  try {
    const admin: AdminServer = {
      url: await start(),
      serve: (next) => {
        listener = next;
      },
      close: () => server.close(ADMIN_DRAIN_MS),
    };
    return { admin };
  } catch (error) {
    const problem = error as NodeJS.ErrnoException;
    if (named !== undefined || problem.code !== 'EADDRINUSE')
      throw new Fatal(listenSentence(problem, host, port, ADMIN_FLAGS), { cause: error });
    const withoutAdmin = `without the console, the operators' API and /metrics: port ${port} on ${host}, the default of the admin listener, is taken by another program`;
    parts.log.warn(
      { host, port },
      `serving ${withoutAdmin}; choose another with --admin-port (0 takes any free one)`,
    );
    return { withoutAdmin };
  }
}

/** The flags that set the address. */
interface AddressFlags {
  of: string;
  host: string;
  port: string;
}

const API_FLAGS: AddressFlags = { of: '', host: '--host', port: '--port' };
const ADMIN_FLAGS: AddressFlags = {
  of: ', for the admin listener,',
  host: '--admin-host (server.admin.host)',
  port: '--admin-port (server.admin.port)',
};

function listenSentence(
  { code, message }: NodeJS.ErrnoException,
  host: string,
  port: number,
  flags: AddressFlags,
): string {
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host}${flags.of} is taken by another program: stop it, or choose another with ${flags.port} (0 takes any free one).`;
  if (code === 'EACCES')
    return `Port ${port} on ${host}${flags.of} may not be used by this user: choose one above 1023 with ${flags.port}.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EINVAL')
    return `The address ${host}${flags.of} is not one of this machine: choose another with ${flags.host}.`;
  return `The server cannot listen on ${host}:${port}${flags.of} (${message}): check ${flags.host} and ${flags.port}.`;
}

/** The host of a URL for a server that listens on `host`. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return isIP(host) === 6 ? `[${host}]` : host;
}

/** Warns of plain HTTP, which both contracts refuse, and of /metrics, which requires no key. */
export function warnOfPlainHttp(log: Log, { server }: Pick<Config, 'server'>): void {
  if (!isLoopback(server.admin.host))
    log.warn(
      { host: server.admin.host },
      'the metrics are served beyond this machine, to every client that can connect: allow only your Prometheus to connect to the port',
    );
  if (server.tls === undefined && !isLoopback(server.host))
    log.warn(
      { host: server.host },
      'serving plain HTTP beyond this machine: the contract asks for HTTPS; set --tls-cert and --tls-key, or put a proxy in front',
    );
}
