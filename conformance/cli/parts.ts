import { X509Certificate } from 'node:crypto';
import { type Clock, systemClock } from '../http/clock.ts';
import { type HttpTransportOptions, httpTransport } from '../http/http-transport.ts';
import type { Transport } from '../http/transport.ts';
import type { SshClient } from '../ssh/ssh-client.ts';
import { ssh2Client } from '../ssh/ssh2-client.ts';
import type { SignalSource } from './interruption.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** The system's services that the commands use. */
export interface CliParts {
  terminal: Terminal;
  env: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  ssh: SshClient;
  signals: SignalSource;
  createTransport: (options: HttpTransportOptions & { plain?: true }) => Transport;
  /** Timeout of one request before the run begins. */
  probeTimeoutMs: number;
}

const PROBE_TIMEOUT_MS = 15_000;

export function systemParts(): CliParts {
  return {
    terminal: processTerminal(process.env),
    env: process.env,
    clock: systemClock,
    ssh: ssh2Client(),
    signals: process,
    createTransport: ({ plain, ...options }) =>
      plain === true ? plainTransport(options) : httpTransport(options),
    probeTimeoutMs: PROBE_TIMEOUT_MS,
  };
}

/** Receives the exit code of a command. */
export type Finish = (exitCode: number) => void;

/** The transport of a plain run. Its library is loaded with the first request: other commands start faster without it. */
function plainTransport(options: HttpTransportOptions): Transport {
  if (options.ca !== undefined) new X509Certificate(options.ca);
  let opened: Promise<Transport> | undefined;
  const open = (): Promise<Transport> => {
    opened ??= import('../http/marketplace-transport.ts').then(({ marketplaceTransport }) =>
      marketplaceTransport(options),
    );
    return opened;
  };
  return {
    send: async (request, limits) => (await open()).send(request, limits),
    roundTripMs: async (baseUrl, timeoutMs) => (await open()).roundTripMs(baseUrl, timeoutMs),
    close: async () => (await opened)?.close(),
  };
}
