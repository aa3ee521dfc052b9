import { existsSync } from 'node:fs';
import { loadCatalog } from '../../config/load.ts';
import { platformsOf, sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import type { Environment } from '../../config/settings.ts';
import { isLoopback } from '../../contract/loopback.ts';
import { checkState, openSimulator, readToken } from '../../drivers/simulator/driver.ts';
import type { SimulatorConfig } from '../../drivers/simulator/options.ts';
import { createRemoteServer } from '../../drivers/simulator/remote/server.ts';
import { appListener } from '../../http/api/listener.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { catalogOf } from '../../orchestrator/catalog/catalog.ts';
import { errors, refuseWire } from '../../orchestrator/http/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import { createLog } from '../../runtime/log.ts';
import { systemClock, systemRandom } from '../../runtime/system.ts';
import { listen } from '../server/listen.ts';

const DEFAULT_PORT = 8090;

export interface ServeSimulatorOptions {
  config: Config;
  env: Environment;
  stateFile: string;
  host: string;
  /** 0 takes any free port. The default is the port in the platform's `address`. */
  port?: number | undefined;
  platform?: string | undefined;
}

export interface ServingSimulator {
  address: string;
  stateFile: string;
  /** Number of machines in the existing state. Null if the state is new. */
  machines: number | null;
  stop(): Promise<void>;
}

/**
 * Serves a simulator. It takes the port first, so that a failed start changes nothing. @throws {Fatal} with a sentence
 * for the operator
 */
export async function serveSimulator({
  config,
  env,
  stateFile,
  host,
  port,
  platform,
}: ServeSimulatorOptions): Promise<ServingSimulator> {
  const [name, options] = simulatedPlatform(config, platform);
  const token = readToken(env);
  if (token === undefined && !isLoopback(host))
    throw new Fatal(
      `--host ${host} accepts connections from other machines: give the simulator and its servers the same BERTH_SIMULATOR_TOKEN.`,
    );
  const catalog = catalogOf(loadCatalog(config.catalog, sellingPlatforms(config)), name);
  checkState(stateFile);
  const log = createLog(config.log_level);

  const nextId = requestIds(systemRandom);
  const parts = { errors, log, nextId, trustedProxies: 0 };
  let listener = appListener(
    () => Response.json({ error: 'the simulator is starting' }, { status: 503 }),
    parts,
  );
  const { server, origin } = await listen(
    { server: { ...config.server, tls: undefined, host, port: port ?? portOf(options) } },
    { nextId, refuse: refuseWire, log },
    (request, response) => listener(request, response),
  );
  try {
    const isNew = !existsSync(stateFile);
    const running = await openSimulator(catalog, stateFile, systemClock);
    const { fetch } = createRemoteServer({ simulator: running, token });
    listener = appListener(fetch, parts);
    const listing = await running.list();
    const machines = listing.answer === 'listed' ? listing.items.length : 0;
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

/** The platform to simulate: the named one, or the only possible one. @throws {Fatal} */
function simulatedPlatform(config: Config, wanted: string | undefined): [name: string, SimulatorConfig] {
  const platforms = platformsOf(config);
  const simulated = [...platforms].flatMap(([name, options]): [string, SimulatorConfig][] =>
    options.driver === 'simulator' && (wanted ?? name) === name ? [[name, options]] : [],
  );
  const [found, ...others] = simulated;
  if (found !== undefined && others.length === 0) return found;
  if (found !== undefined)
    throw new Fatal(
      `The configuration has several simulators: say which with --platform ${simulated.map(([name]) => name).join(' or --platform ')}.`,
    );
  const named = [...platforms].map(([name, { driver }]) =>
    platforms.size === 1 ? driver : `${driver} (${name})`,
  );
  if (wanted !== undefined && !platforms.has(wanted))
    throw new Fatal(`--platform ${wanted}: the configuration has ${[...platforms.keys()].join(', ')}.`);
  throw new Fatal(`The configuration is for the driver ${named.join(' and ')}, which no simulator replaces.`);
}

function portOf({ address }: SimulatorConfig): number {
  const port = address === undefined ? '' : new URL(address).port;
  return port === '' ? DEFAULT_PORT : Number(port);
}
