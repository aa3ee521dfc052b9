import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { assertHealthy } from '../compose/server/health.ts';
import { urlHost } from '../compose/server/listen.ts';
import { loadConfig } from '../config/load.ts';
import { loadMarketplaceConfig } from '../config/marketplace/load.ts';
import type { Config } from '../config/schema.ts';
import { Fatal } from '../ports/errors.ts';
import { withDatabase } from './database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';
import { type ServerFlags, withServerFlags } from './serving.ts';

type Load = (given: { file?: string | undefined; flags: object; env: NodeJS.ProcessEnv }) => {
  server: Config['server'];
};

/** The servers that have `/healthz`, by their commands. */
const servers: Readonly<Record<string, Load>> = {
  serve: (given) => loadConfig(given).config,
  marketplace: loadMarketplaceConfig,
};

/** `berth health`: asks a server of this machine, which it finds by the server's own flags, variables and file. */
export function healthCommand(): Command {
  return withOutput(
    new Command('health').argument(
      '[command...]',
      'the command line of the server, such as `marketplace --port 8443`; default: serve',
    ),
  )
    .option('--pid <pid>', 'take the command line of this process, if it is a server (Linux)')
    .allowUnknownOption()
    .action(async (given: string[], flags: OutputFlag & { pid?: string }) => {
      const words = flags.pid === undefined ? given : serverIn(readCommandLine(flags.pid));
      const { host, port, tls } = addressOf(words.length === 0 ? ['serve'] : words);
      const url = `${tls === undefined ? 'http' : 'https'}://${urlHost(host)}:${port}`;
      await assertHealthy({ host, port, tls }).catch((cause: Error) => {
        throw new Fatal(`The server at ${url} is not healthy: ${cause.message}.`, { cause });
      });
      printDone(flags, { url, healthy: true }, `The server at ${url} is healthy.`);
    });
}

/** Returns the address of a server that was started with this command line. @throws {Fatal} */
function addressOf([name = '', ...words]: readonly string[]): Config['server'] {
  const load = servers[name];
  if (load === undefined)
    throw new Fatal(`berth ${name} is not a server that has /healthz: give serve or marketplace.`);
  const command = withServerFlags(withDatabase(new Command(name)), { api: 0, admin: 0 });
  command.allowUnknownOption().allowExcessArguments().parse(words, { from: 'user' });
  const { config: file, output: _output, ...flags } = command.opts<ServerFlags>();
  const { server } = load({ file, flags, env: process.env });
  if (server.port === 0)
    throw new Fatal('--port 0: the server takes any free port; give the one that it took.');
  return server;
}

/** The words from the name of a server on: the program before it may be Node, or an init that starts it. */
export function serverIn(words: readonly string[]): readonly string[] {
  const at = words.findIndex(
    (word, index) => word in servers && /(^|\/)(berth|main\.[jt]s)$/.test(words[index - 1] ?? ''),
  );
  return at === -1 ? [] : words.slice(at);
}

function readCommandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${Number(pid)}/cmdline`, 'utf8')
      .split('\0')
      .slice(0, -1);
  } catch (cause) {
    throw new Fatal(`--pid ${pid}: the command line of this process cannot be read.`, { cause });
  }
}
