import { Command } from 'commander';
import { printLine } from './print.ts';
import { type ServeParts, type Serving, serve } from './serve.ts';
import { ONLY_OWNER, stopOnSignal } from './stop-on-signal.ts';

interface ServeFlags {
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

/** `berth serve`. */
export function serveCommand(parts: ServeParts = {}): Command {
  return new Command('serve')
    .option('--host <address>', 'where to listen; default 127.0.0.1')
    .option('--port <number>', '0 takes any free one; default 8080')
    .option('--admin-host <address>', 'where /metrics listens; default 127.0.0.1')
    .option('--admin-port <number>', '0 takes any free one; default 9080, or any with --port 0')
    .option('--database <url>', 'sqlite:PATH or postgres://…; default sqlite:./.berth/berth.db')
    .option('--config <file>', 'berth.yaml; see berth.example.yaml')
    .option('--tls-cert <file>', 'PEM certificate chain')
    .option('--tls-key <file>', 'PEM private key')
    .option('--json', 'print one line of JSON when ready')
    .action(async ({ config, json, ...flags }: ServeFlags) => {
      process.umask(ONLY_OWNER);
      const serving = await serve({ configFile: config, flags, env: process.env }, parts);
      stopOnSignal(serving);
      if (json) printLine(JSON.stringify(toReadyLine(serving)));
      else welcome(serving);
    });
}

function toReadyLine({ baseUrl, adminUrl, apiKey }: Serving): object {
  return { base_url: baseUrl, admin_url: adminUrl, api_key: apiKey };
}

function welcome({ baseUrl, adminUrl, apiKey, catalogFile, hasDocs }: Serving): void {
  printLine(`Berth serves ${baseUrl}`);
  printLine(`  catalog  ${catalogFile}`);
  if (hasDocs) printLine(`  docs     ${new URL('/docs', baseUrl)}`);
  if (adminUrl !== null) printLine(`  metrics  ${new URL('/metrics', adminUrl)}`);
  const key = apiKey === null ? 'the one you have' : `${apiKey}   (shown this once)`;
  printLine(`  API key  ${key}; \`berth keys create\` makes another`);
  printLine(`\nTry it:\n  curl -H 'Authorization: Bearer ${apiKey ?? '<API_KEY>'}' ${baseUrl}/availability`);
}
