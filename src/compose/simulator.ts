import { existsSync } from 'node:fs';
import { getRequestListener } from '@hono/node-server';
import { loadCatalog } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import type { Environment } from '../config/settings.ts';
import { checkState, openSimulator, readToken, simulator } from '../drivers/simulator/driver.ts';
import { createRemoteServer } from '../drivers/simulator/remote/server.ts';
import { requestIds } from '../http/api/request-context.ts';
import { refuseWire } from '../orchestrator/http/errors.ts';
import { Fatal } from '../ports/errors.ts';
import { createLog } from '../runtime/log.ts';
import { systemClock, systemRandom } from '../runtime/system.ts';
import { isLoopback, listen } from './listen.ts';

const DEFAULT_PORT = 8090;

/** What `berth simulator` runs with. */
export interface ServeSimulatorOptions {
  config: Config;
  env: Environment;
  stateFile: string;
  host: string;
  /** 0: any free one; absent: that of `platform.address`. */
  port?: number | undefined;
}

export interface ServingSimulator {
  address: string;
  stateFile: string;
  /** Of the state that was there; null: it is new. */
  machines: number | null;
  stop(): Promise<void>;
}

/**
 * Serves the simulator to several orchestrators. The port is taken before anything is written, so a start that fails
 * changes nothing.
 *
 * @throws {Fatal} with a sentence for the operator
 */
export async function serveSimulator({
  config,
  env,
  stateFile,
  host,
  port = portOf(config),
}: ServeSimulatorOptions): Promise<ServingSimulator> {
  const { platform } = config;
  if (platform.driver !== simulator.name)
    throw new Fatal(
      `The configuration is for the driver ${platform.driver}, which no simulator stands in for.`,
    );
  const token = readToken(env);
  if (token === undefined && !isLoopback(host))
    throw new Fatal(
      `--host ${host} lets others than this machine in: give the simulator and its servers the same BERTH_SIMULATOR_TOKEN.`,
    );
  const catalog = loadCatalog(config.catalog);
  checkState(stateFile);
  const log = createLog(config.log.level);
  const clock = systemClock;

  let listener = getRequestListener(() =>
    Response.json({ error: 'the simulator is starting' }, { status: 503 }),
  );
  const { server, origin } = await listen(
    { ...config, server: { host, port } },
    { nextId: requestIds(systemRandom), refuse: refuseWire, log },
    (request, response) => listener(request, response),
  );
  try {
    const isNew = !existsSync(stateFile);
    const running = await openSimulator(platform, catalog, stateFile, clock);
    listener = getRequestListener(createRemoteServer({ simulator: running, token, clock }).fetch);
    const { length: machines } = (await running.inspect()).machines;
    log.info({ base_url: origin, state: stateFile, isNew, machines, catalog: config.catalog }, 'simulating');
    return {
      address: origin,
      stateFile,
      machines: isNew ? null : machines,
      stop: async () => {
        await server.close(0);
        await running.close();
      },
    };
  } catch (error) {
    await server.close(0);
    throw error;
  }
}

function portOf({ platform }: Config): number {
  const port =
    platform.driver !== simulator.name || platform.address === undefined
      ? ''
      : new URL(platform.address).port;
  return port === '' ? DEFAULT_PORT : Number(port);
}
