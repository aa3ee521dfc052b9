import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { loadCatalog } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Environment } from '../config/settings.ts';
import { ApiError } from '../contract/errors.ts';
import { driverNamed } from '../drivers/registry.ts';
import { requestIds } from '../http/api/request-context.ts';
import { digestSecret } from '../keys/api-key.ts';
import { readSecret } from '../keys/read-secret.ts';
import { ensureAccess } from '../orchestrator/accounts/accounts.ts';
import { refuseWire } from '../orchestrator/http/errors.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Failpoint } from '../orchestrator/platform/call-platform.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/system.ts';
import { assertNotServed, takeServeLock } from '../store/sqlite/serve-lock.ts';
import { createServerClock, type ServerClock } from './clock.ts';
import { listen, listenAdmin, warnOfPlainHttp } from './listen.ts';
import { describeDatabase, openStore } from './open-store.ts';
import { startOrchestrator } from './orchestrator.ts';

/** What `berth serve` runs with. */
export interface ServeOptions {
  config: Config;
  env: Environment;
}

/** Where /metrics is, unless the configuration says otherwise. */
const ADMIN_PORT = 9080;

/** What a test build of the process puts in; production uses the defaults. */
export interface ServePorts {
  clock?: Clock;
  random?: Random;
  failpoint?: Failpoint;
  wrapStore?: (store: Store) => Store;
}

export interface Serving {
  baseUrl: string;
  /** Where /metrics is; null: nowhere. */
  adminUrl: string | null;
  /** The key of the first start, to be shown once. */
  apiKey: string | null;
  catalogFile: string;
  /** Whether /docs is served. */
  hasDocs: boolean;
  /** Drains: takes no new request, lets the running ones and the running steps end. */
  stop(): Promise<void>;
}

/**
 * Serves the orchestrator. The port is taken before anything is written, so a start that fails changes nothing.
 *
 * @throws {Fatal} with a sentence for the operator
 */
export async function serveOrchestrator(
  { config, env }: ServeOptions,
  ports: ServePorts = {},
): Promise<Serving> {
  const environmentKey = readEnvironmentKey(env);
  const catalog = loadCatalog(config.catalog);
  const log = createLog(config.log.level);
  const { clock, hearTime }: ServerClock =
    ports.clock === undefined ? createServerClock(config.database, log) : { clock: ports.clock };
  const { random = systemRandom, failpoint = () => undefined, wrapStore = (store) => store } = ports;

  const databaseFile = isPostgres(config.database) ? undefined : sqlitePath(config.database);
  const setting = { catalog, databaseFile, env, clock };
  const definition = driverNamed(config.platform.driver);
  const nextId = requestIds(random);
  let listener: RequestListener = answerNotReady(nextId);
  const wire = { nextId, refuse: refuseWire, log };
  const { server, origin } = await listen(config, wire, (request, response) => listener(request, response));
  const baseUrl = `${origin}/v1`;
  const undo: (() => unknown)[] = [() => server.close(0)];
  try {
    const admin = await listenAdmin(config, ADMIN_PORT, wire, listener);
    undo.push(() => admin?.close());
    const opened = await openStore(
      config.database,
      () => {
        if (databaseFile !== undefined) assertNotServed(databaseFile);
        definition.check(config.platform, setting);
        if (databaseFile !== undefined) undo.push(takeServeLock(databaseFile));
      },
      { log, ...(hearTime && { hearTime }) },
    );
    undo.unshift(() => opened.close());
    const store = wrapStore(opened);
    const driver = await definition.open(config.platform, setting);
    undo.unshift(() => driver.close());
    const { apiKey, accountId } = await ensureAccess({ store, clock, random }, environmentKey);
    const orchestrator = await startOrchestrator({
      config,
      catalog,
      store,
      driver,
      environmentKey: environmentKey && { digest: environmentKey, accountId },
      clock,
      random,
      log,
      failpoint,
    });
    listener = orchestrator.listener;
    admin?.serve(getRequestListener(orchestrator.admin.fetch));
    warnOfPlainHttp(log, config);
    log.info(
      {
        base_url: baseUrl,
        admin_url: admin?.url,
        database: describeDatabase(config.database),
        catalog: config.catalog,
        platform: config.platform.driver,
      },
      'serving',
    );
    return {
      baseUrl,
      adminUrl: admin?.url ?? null,
      apiKey,
      catalogFile: config.catalog,
      hasDocs: config.server.docs,
      stop: async () => {
        log.info({}, 'draining');
        orchestrator.beginDrain();
        await server.close(config.limits.drain_s * 1000);
        await admin?.close();
        await orchestrator.close();
        for (const step of undo) await step();
        log.info({}, 'stopped');
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    throw error;
  }
}

function answerNotReady(nextId: () => string): RequestListener {
  return (_request, response) => {
    const error = new ApiError('unavailable', 'The orchestrator is starting; try again.');
    response.writeHead(error.status, {
      'Content-Type': 'application/json',
      'X-Request-Id': nextId(),
      'Retry-After': '1',
    });
    response.end(JSON.stringify(error.toBody()));
  };
}

/**
 * The digest of the key in BERTH_API_KEY, which is valid while this process serves.
 *
 * @throws {Fatal} if it is none that a client could send, or could be guessed.
 */
function readEnvironmentKey(env: Environment): Buffer | undefined {
  const key = readSecret(env, 'BERTH_API_KEY');
  return key === undefined ? undefined : digestSecret(key);
}
