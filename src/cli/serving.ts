import type { Command } from 'commander';
import { Fatal } from '../ports/errors.ts';
import { printLine } from '../runtime/print.ts';

/** What the process makes, others may not read: the database and the machines' state hold what tenants sent. */
const ONLY_OWNER = 0o077;

interface Stoppable {
  stop(): Promise<void>;
  /** Reads the configuration anew. Absent: a SIGHUP has its usual effect. */
  reload?(): Promise<void>;
}

/** The flags of both servers that go over the configuration. */
export interface ServerFlags {
  host?: string;
  port?: string;
  adminHost?: string;
  adminPort?: string;
  database?: string;
  config?: string;
  tlsCert?: string;
  tlsKey?: string;
  json?: true;
}

/** Where a server listens; `ports` are the defaults that the help names. */
export function withServerFlags(command: Command, ports: { api: number; admin: number }): Command {
  return command
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', `0 takes any free one; default ${ports.api}`)
    .option('--admin-host <address>', 'where /metrics listens; default 127.0.0.1')
    .option('--admin-port <number>', `0 takes any free one; default ${ports.admin}, or any with --port 0`)
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--json', 'print one line of JSON when ready');
}

/** Starts a server, says that it is ready, and stops it at a signal. */
export async function serveUntilSignal<Server extends Stoppable>(
  start: () => Promise<Server>,
  ready: { json: true | undefined; toJson: (server: Server) => object; welcome: (server: Server) => void },
): Promise<void> {
  process.umask(ONLY_OWNER);
  const server = await start();
  stopOnSignal(server);
  reloadOnSignal(server);
  if (ready.json) printLine(JSON.stringify(ready.toJson(server)));
  else ready.welcome(server);
}

/** The first signal drains and exits 0; a second one has its usual effect: it ends the process at once. */
function stopOnSignal(server: Stoppable): void {
  const onSignal = (): void => {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
    server.stop().catch((error) => {
      process.stderr.write(`berth: the shutdown was not clean: ${error}\n`);
      process.exitCode = 1;
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}

/** What is wrong with the configuration is in the log, and in an alarm: the server goes on as it was. */
function reloadOnSignal(server: Stoppable): void {
  if (server.reload === undefined) return;
  const reload = server.reload.bind(server);
  process.on('SIGHUP', () => {
    reload().catch((error) => {
      if (!(error instanceof Fatal)) process.stderr.write(`berth: the reload failed: ${error}\n`);
    });
  });
}

/** A port as a flag names it. @throws {Fatal} */
export function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Fatal(`--port ${text}: give a whole number from 0 to 65535.`);
  return port;
}
