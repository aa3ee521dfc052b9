import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { Command } from 'commander';
import { loadConfig } from '../config/load.ts';
import { loadCatalog } from '../config/load-catalog.ts';
import { createRemoteServer } from '../drivers/simulator/remote-server.ts';
import { requestIds } from '../http/api/request-context.ts';
import { refuseWire } from '../orchestrator/http/errors.ts';
import { systemClock, systemRandom } from '../runtime/system.ts';
import { checkDriver, openSimulator } from './create-driver.ts';
import { Fatal } from './fatal.ts';
import { isLoopback, listen } from './listen.ts';
import { createLog } from './log.ts';
import { printLine } from './print.ts';
import { readSecret } from './read-secret.ts';
import { ONLY_OWNER, type Stoppable, stopOnSignal } from './stop-on-signal.ts';

interface SimulatorFlags {
  config?: string;
  state: string;
  host: string;
  port?: string;
  json?: true;
}

const DEFAULT_PORT = '8090';

/** `berth simulator`: the platform of several `berth serve`, in a process of its own. */
export function simulatorCommand(): Command {
  return new Command('simulator')
    .option('--state <file>', 'the SQLite file of its machines and volumes', '.berth/simulator.db')
    .option('--config <file>', 'berth.yaml; the same as that of the servers')
    .option(
      '--host <address>',
      'where to listen; another than loopback asks for BERTH_SIMULATOR_TOKEN',
      '127.0.0.1',
    )
    .option('--port <number>', `0 takes any free one; default that of platform.address, or ${DEFAULT_PORT}`)
    .option('--json', 'print one line of JSON when ready')
    .action(async (flags: SimulatorFlags) => {
      process.umask(ONLY_OWNER);
      const running = await runSimulator(flags, process.env);
      stopOnSignal(running);
      if (flags.json) printLine(JSON.stringify({ base_url: running.address }));
      else
        printLine(
          `The simulator answers at ${running.address}, ${running.contents}\n\nIn the berth.yaml of each server:\n  platform: { driver: simulator, address: '${running.address}' }`,
        );
    });
}

/** The port is taken before anything is written, so a start that fails changes nothing. @throws {Fatal} */
async function runSimulator(
  { config: configFile, state, host, port }: SimulatorFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Stoppable & { address: string; contents: string }> {
  const token = readSecret(env, 'BERTH_SIMULATOR_TOKEN');
  if (token === undefined && !isLoopback(host))
    throw new Fatal(
      `--host ${host} lets others than this machine in: give the simulator and its servers the same BERTH_SIMULATOR_TOKEN.`,
    );
  const { config } = loadConfig({ file: configFile, flags: {}, env: {} });
  const catalog = loadCatalog(config.catalog);
  const stateFile = resolve(state);
  checkDriver({ ...config, platform: { ...config.platform, address: undefined } }, stateFile);
  const log = createLog(config.log.level);
  const clock = systemClock;

  let listener = getRequestListener(() =>
    Response.json({ error: 'the simulator is starting' }, { status: 503 }),
  );
  const taken = port ?? (new URL(config.platform.address ?? 'http://x').port || DEFAULT_PORT);
  const { server, origin } = await listen(
    { ...config, server: { host, port: toPort(taken) } },
    { nextId: requestIds(systemRandom), refuse: refuseWire, log },
    (request, response) => listener(request, response),
  );
  try {
    const isNew = !existsSync(stateFile);
    const simulator = await openSimulator(config, catalog, { stateFile, clock });
    listener = getRequestListener(createRemoteServer({ simulator, token, clock }).fetch);
    const { length: machines } = (await simulator.inspect()).machines;
    log.info({ base_url: origin, state: stateFile, isNew, machines, catalog: config.catalog }, 'simulating');
    return {
      address: origin,
      contents: isNew
        ? `with a new state ${stateFile}`
        : `with its state ${stateFile} (machines: ${machines})`,
      stop: async () => {
        await server.close(0);
        await simulator.close();
      },
    };
  } catch (error) {
    await server.close(0);
    throw error;
  }
}

function toPort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Fatal(`--port ${text}: give a whole number from 0 to 65535.`);
  return port;
}
