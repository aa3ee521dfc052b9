import { Command } from 'commander';
import { type ServePorts, type Serving, serveOrchestrator } from '../compose/serve-orchestrator.ts';
import { loadConfig } from '../config/load.ts';
import { printLine } from '../runtime/print.ts';
import { withDatabase } from './database.ts';
import { type ServerFlags, serveUntilSignal, withServerFlags } from './serving.ts';

/** `berth serve`. */
export function serveCommand(ports: ServePorts = {}): Command {
  return withServerFlags(withDatabase(new Command('serve')), { api: 8080, admin: 9080 }).action(
    async ({ config: file, json, ...flags }: ServerFlags) => {
      const load = () => loadConfig({ file, flags, env: process.env }).config;
      const start = () => serveOrchestrator({ config: load(), env: process.env, load }, ports);
      await serveUntilSignal(start, { json, toJson: toReadyLine, welcome });
    },
  );
}

function toReadyLine({ baseUrl, adminUrl, apiKey }: Serving): object {
  return { base_url: baseUrl, admin_url: adminUrl, api_key: apiKey };
}

function welcome({ baseUrl, adminUrl, apiKey, catalogFile, hasDocs }: Serving): void {
  printLine(`Berth serves ${baseUrl}`);
  printLine(`  catalog  ${catalogFile}`);
  if (hasDocs) printLine(`  docs     ${new URL('/docs', baseUrl)}`);
  if (adminUrl !== null) {
    printLine(`  metrics  ${new URL('/metrics', adminUrl)}`);
    printLine(
      `  console  ${new URL('/console', adminUrl)}   (\`berth operators create NAME\` makes a key for it)`,
    );
  }
  const key = apiKey === null ? 'the one you have' : `${apiKey}   (shown this once)`;
  printLine(`  API key  ${key}; \`berth keys create\` makes another`);
  printLine(`\nTry it:\n  curl -H 'Authorization: Bearer ${apiKey ?? '<API_KEY>'}' ${baseUrl}/availability`);
}
