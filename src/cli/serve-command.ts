import { Command } from 'commander';
import { type ServePorts, type Serving, serveOrchestrator } from '../compose/serve/orchestrator.ts';
import { loadConfig } from '../config/load.ts';
import { printLine } from '../runtime/print.ts';
import { backupsInProcess } from './backup-command.ts';
import { withDatabase } from './database.ts';
import { sameBerth } from './invocation.ts';
import {
  adminLines,
  printFacts,
  printTry,
  type ServerFlags,
  serveUntilSignal,
  withServerFlags,
} from './serving.ts';

export function serveCommand(ports: ServePorts = {}): Command {
  return withServerFlags(withDatabase(new Command('serve')), { api: 8080, admin: 9080 }).action(
    async ({ config: file, output, ...flags }: ServerFlags) => {
      const load = () => loadConfig({ file, flags, env: process.env }).config;
      const start = (umask: number) => {
        const config = load();
        const makeBackup = backupsInProcess(['backup'], config.database);
        return serveOrchestrator({ config, env: process.env, umask, load, makeBackup }, ports);
      };
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
  { baseUrl, apiKey, catalogFile, ...admin }: Serving,
  flags: Pick<ServerFlags, 'config' | 'database'>,
): void {
  printLine(`Berth serves ${baseUrl}`);
  printFacts([
    ['catalog', catalogFile],
    ...adminLines(admin, sameBerth('operators create me', flags)),
    [
      'API key',
      apiKey === null ? 'the one you have; another one:' : `${apiKey}   (shown only now); another one:`,
    ],
    ['', `  ${sameBerth('keys create', flags)}`],
  ]);
  printTry(`curl -H 'Authorization: Bearer ${apiKey ?? '<API_KEY>'}' ${baseUrl}/availability`);
}
