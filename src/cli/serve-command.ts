import { Command } from 'commander';
import { printLine } from './print.ts';
import { type ServeParts, type Serving, serve } from './serve.ts';

interface ServeFlags {
  host?: string;
  port?: string;
  database?: string;
  config?: string;
  tlsCert?: string;
  tlsKey?: string;
  json?: true;
}

/** What the process makes, others may not read: the database and the machines' state hold what tenants sent. */
export const ONLY_OWNER = 0o077;

/** `berth serve`. */
export function serveCommand(parts: ServeParts = {}): Command {
  return new Command('serve')
    .description('serve the /v1 contract; without a config on the simulator and the bundled catalog')
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', '0 takes any free one; default 8080')
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/berth.db')
    .option('--config <file>', 'berth.yaml; see berth.example.yaml')
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--json', 'print one line of JSON when ready')
    .action(async ({ config, json, ...flags }: ServeFlags) => {
      process.umask(ONLY_OWNER);
      const serving = await serve({ configFile: config, flags, env: process.env }, parts);
      stopOnSignal(serving);
      if (json) printLine(JSON.stringify({ base_url: serving.baseUrl, api_key: serving.apiKey }));
      else welcome(serving);
    });
}

function welcome({ baseUrl, apiKey, catalogFile }: Serving): void {
  printLine(`Berth serves ${baseUrl}`);
  printLine(`  catalog  ${catalogFile}`);
  printLine(`  docs     ${new URL('/docs', baseUrl)}`);
  const key = apiKey === null ? 'the one you have' : `${apiKey}   (shown this once)`;
  printLine(`  API key  ${key}; \`berth keys create\` makes another`);
  printLine(`\nTry it:\n  curl -H 'Authorization: Bearer ${apiKey ?? '<API_KEY>'}' ${baseUrl}/availability`);
}

export type Stoppable = Pick<Serving, 'stop'>;

/** The first signal drains and exits 0; a second one has its usual effect: it ends the process at once. */
export function stopOnSignal(serving: Stoppable): void {
  const onSignal = (): void => {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
    serving.stop().catch((error) => {
      process.stderr.write(`berth: the shutdown was not clean: ${error}\n`);
      process.exitCode = 1;
    });
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
