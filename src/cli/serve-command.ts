import { Command } from 'commander';
import { type ServePorts, type Serving, serveOrchestrator } from '../compose/serve/orchestrator.ts';
import { loadConfig } from '../config/load.ts';
import { printLine } from '../runtime/print.ts';
import { withDatabase } from './database.ts';
import { sameBerth } from './invocation.ts';
import { printTry, type ServerFlags, serveUntilSignal, withServerFlags } from './serving.ts';

export function serveCommand(ports: ServePorts = {}): Command {
  return withServerFlags(withDatabase(new Command('serve')), { api: 8080, admin: 9080 }).action(
    async ({ config: file, output, ...flags }: ServerFlags) => {
      const load = () => loadConfig({ file, flags, env: process.env }).config;
      const start = (umask: number) =>
        serveOrchestrator({ config: load(), env: process.env, umask, load }, ports);
      const welcome = (serving: Serving) =>
        printWelcome(serving, { ...flags, ...(file !== undefined && { config: file }) });
      await serveUntilSignal(start, { output }, { toJson: toReadyLine, welcome });
    },
  );
}

function toReadyLine({ baseUrl, adminUrl, apiKey }: Serving): object {
  return { base_url: baseUrl, admin_url: adminUrl, api_key: apiKey };
}

function printWelcome(
  { baseUrl, adminUrl, apiKey, catalogFile, hasDocs }: Serving,
  flags: Pick<ServerFlags, 'config' | 'database'>,
): void {
  printLine(`Berth serves ${baseUrl}`);
  printLine(`  catalog  ${catalogFile}`);
  if (hasDocs) printLine(`  docs     ${new URL('/docs', baseUrl)}`);
  if (adminUrl !== null) {
    printLine(`  metrics  ${new URL('/metrics', adminUrl)}`);
    printLine(
      `  console  ${new URL('/console', adminUrl)}, with the key that this prints in another terminal:`,
    );
    printLine(`             ${sameBerth('operators create me', flags)}`);
  }
  printLine(
    `  API key  ${apiKey === null ? 'the one you have; another one:' : `${apiKey}   (shown only now); another one:`}`,
  );
  printLine(`             ${sameBerth('keys create', flags)}`);
  printTry(`curl -H 'Authorization: Bearer ${apiKey ?? '<API_KEY>'}' ${baseUrl}/availability`);
}
