import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { Config } from '../config/schema.ts';
import { HttpServer, type ServerOptions } from '../http/server.ts';
import { fileProblem } from '../store/sqlite/database-refused.ts';
import { Fatal } from './fatal.ts';

/** Takes the address that the configuration names. @throws {Fatal} */
export async function listen(
  config: Pick<Config, 'server' | 'limits'>,
  parts: Pick<ServerOptions, 'nextId' | 'refuse' | 'log'>,
  listener: RequestListener,
): Promise<{ server: HttpServer; origin: string }> {
  const { host, port, tls } = config.server;
  const options = {
    host,
    port,
    tls: tls && readTls(tls),
    requestTimeoutMs: config.limits.request_timeout_s * 1000,
    ...parts,
  };
  const server = new HttpServer(listener, options);
  try {
    const taken = await server.listen(options);
    return { server, origin: `${tls === undefined ? 'http' : 'https'}://${urlHost(host)}:${taken}` };
  } catch (error) {
    throw new Fatal(listenSentence(error as NodeJS.ErrnoException, host, port), { cause: error });
  }
}

function readTls({ cert, key }: { cert: string; key: string }): { cert: Buffer; key: Buffer } {
  const tls = { cert: readPem(cert, 'certificate', '--tls-cert'), key: readPem(key, 'key', '--tls-key') };
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new Fatal(
      `${cert} and ${key} are no TLS certificate chain and its key (${(error as Error).message.split(':').at(-1)}): give PEM files that belong together, the key without a passphrase.`,
      { cause: error },
    );
  }
  return tls;
}

function readPem(file: string, what: string, flag: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Fatal(`The TLS ${what} ${file} cannot be read (${fileProblem(error)}): check ${flag}.`, {
      cause: error,
    });
  }
}

function listenSentence({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${host} is taken by another program: stop it, or choose another with --port (0 takes any free one).`;
  if (code === 'EACCES')
    return `Port ${port} on ${host} may not be used by this user: choose one above 1023 with --port.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EINVAL')
    return `The address ${host} is not one of this machine: choose another with --host.`;
  return `The server cannot listen on ${host}:${port} (${message}): check --host and --port.`;
}

function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return isIP(host) === 6 ? `[${host}]` : host;
}

/** Whether only programs of this machine reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
