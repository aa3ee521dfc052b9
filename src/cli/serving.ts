import type { Command } from 'commander';
import type { Served } from '../compose/serve/serve.ts';
import { Fatal } from '../ports/errors.ts';
import { printError, printLine } from '../runtime/print.ts';
import { onFirstSignal } from '../runtime/signals.ts';
import { isData, type OutputFlag, printData, withOutput } from './print-records.ts';

/** Files that the process creates are private: the database and the machines' state contain tenants' data. */
const ONLY_OWNER = 0o077;

/** How long the server's remaining handles may take to close. */
const LINGER_MS = 200;

interface Stoppable {
  stop(): Promise<void>;
  /** Reloads the configuration. Without it, SIGHUP has its usual effect. */
  reload?(): Promise<void>;
}

/** The flags of both servers that override the configuration. */
export interface ServerFlags extends OutputFlag {
  host?: string;
  port?: string;
  adminHost?: string;
  adminPort?: string;
  database?: string;
  config?: string;
  tlsCert?: string;
  tlsKey?: string;
  adminTlsCert?: string;
  adminTlsKey?: string;
}

/** Adds a server's flags; `ports` are the defaults in the help. */
export function withServerFlags(command: Command, ports: { api: number; admin: number }): Command {
  return withOutput(command)
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', `0 takes any free one; default ${ports.api}`)
    .option('--admin-host <address>', 'where /metrics listens; default 127.0.0.1')
    .option('--admin-port <number>', `0 takes any free one; default ${ports.admin}, or any with --port 0`)
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--admin-tls-cert <file>', 'the same for the admin listener; beyond loopback it needs TLS')
    .option('--admin-tls-key <file>', 'PEM private key for the admin listener');
}

/**
 * Starts a server with the process's original umask, reports that it is ready, and stops it at a signal. The first signal
 * drains and exits 0. A second one has its usual effect: it ends the process at once.
 */
export async function serveUntilSignal<Server extends Stoppable>(
  start: (umask: number) => Promise<Server>,
  flags: OutputFlag & { stopWithStdin?: true },
  ready: { toJson: (server: Server) => object; welcome: (server: Server) => void },
): Promise<void> {
  const umask = process.umask(ONLY_OWNER);
  const server = await start(umask);
  const stop = stopper(server);
  onFirstSignal(stop);
  if (flags.stopWithStdin) process.stdin.once('end', stop).resume();
  reloadOnSignal(server);
  if (isData(flags)) printData(flags, ready.toJson(server));
  else ready.welcome(server);
}

/** A function that drains the server and ends the process. */
function stopper(server: Stoppable): () => void {
  return () => {
    const stopped = server.stop().catch((error) => {
      printError(`berth: the shutdown was not clean: ${error}\n`);
      process.exitCode = 1;
    });
    // Remaining handles must not keep the process alive.
    void stopped.then(() => setTimeout(() => process.exit(), LINGER_MS).unref());
  };
}

/** Reloads the configuration at SIGHUP. Its errors go to the log and an alarm, and the server continues unchanged. */
function reloadOnSignal(server: Stoppable): void {
  if (server.reload === undefined) return;
  const reload = server.reload.bind(server);
  process.on('SIGHUP', () => {
    reload().catch((error) => {
      if (!(error instanceof Fatal)) printError(`berth: the reload failed: ${error}\n`);
    });
  });
}

/** The lines of the welcome about the admin listener. `createKey`: the command that creates an operator key. */
export function adminLines(
  { adminUrl, withoutAdmin }: Pick<Served, 'adminUrl' | 'withoutAdmin'>,
  createKey: string,
): [name: string, text: string][] {
  if (withoutAdmin !== undefined)
    return [
      ['console', `none: this server runs ${withoutAdmin}.`],
      ['', 'Stop that program and start this server again, or start it with --admin-port 0 (any free port).'],
    ];
  if (adminUrl === null) return [];
  return [
    ['metrics', String(new URL('/metrics', adminUrl))],
    ['console', `${new URL('/console', adminUrl)}, with the key that this prints in another terminal:`],
    ['', `  ${createKey}`],
  ];
}

/** Prints facts of the welcome in two columns. */
export function printFacts(facts: readonly (readonly [name: string, text: string])[]): void {
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, text] of facts) printLine(`  ${name.padEnd(width)}  ${text}`);
}

/** Prints the end of the welcome: commands to try first. */
export function printTry(...commands: string[]): void {
  printLine('');
  printLine('Try it:');
  for (const command of commands) printLine(`  ${command}`);
}

/** Where to listen, and under which host names. @throws {Fatal} */
export function toAddress({ host, port, hosts }: { host: string; port: string; hosts?: string }) {
  return { host, port: toPort(port), hosts: hosts?.split(',') ?? [] };
}

/** Parses the port of a flag. @throws {Fatal} */
export function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Fatal(`--port ${text}: give a whole number from 0 to 65535.`);
  return port;
}
