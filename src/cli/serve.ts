import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { loadConfig } from '../config/load.ts';
import { loadCatalog } from '../config/load-catalog.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { ConfigFlags } from '../config/settings.ts';
import { ApiError } from '../contract/errors.ts';
import { requestIds } from '../http/api/request-context.ts';
import { refuseWire } from '../orchestrator/http/errors.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Failpoint } from '../orchestrator/platform/call-platform.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { createSharedClock, createSystemClock, systemRandom } from '../runtime/system.ts';
import { assertNotServed, takeServeLock } from '../store/sqlite/serve-lock.ts';
import { checkDriver, createDriver, simulatorStateFile } from './create-driver.ts';
import { ensureAccess, readEnvironmentKey } from './first-start.ts';
import { listen, listenAdmin } from './listen.ts';
import { createLog } from './log.ts';
import { describeDatabase, openStore } from './open-store.ts';
import { readSecret } from './read-secret.ts';
import { startOrchestrator } from './start-orchestrator.ts';
import { tellClock, warnOfJump, warnOfPlainHttp } from './warnings.ts';

export interface ServeOptions {
  configFile?: string | undefined;
  flags: ConfigFlags;
  env: Readonly<Record<string, string | undefined>>;
}

/** Where /metrics is, unless the configuration says otherwise. */
const ADMIN_PORT = 9080;

/** What a test build of the process puts in; production uses the defaults. */
export interface ServeParts {
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
 * Starts `berth serve`. The port is taken before anything is written, so a start that fails changes nothing.
 *
 * @throws {Fatal | ConfigError | DatabaseRefused} with a sentence for the operator
 */
export async function serve(
  { configFile, flags, env }: ServeOptions,
  parts: ServeParts = {},
): Promise<Serving> {
  const { config } = loadConfig({ file: configFile, flags, env });
  const environmentKey = readEnvironmentKey(env);
  const simulatorToken = readSecret(env, 'BERTH_SIMULATOR_TOKEN');
  const catalog = loadCatalog(config.catalog);
  const log = createLog(config.log.level);
  const shared =
    parts.clock === undefined && isPostgres(config.database) ? createSharedClock(tellClock(log)) : undefined;
  const {
    clock = shared ?? createSystemClock({ onJump: (byMs) => warnOfJump(log, byMs) }),
    random = systemRandom,
    failpoint = () => undefined,
    wrapStore = (store) => store,
  } = parts;

  const nextId = requestIds(random);
  let listener: RequestListener = answerNotReady(nextId);
  const wire = { nextId, refuse: refuseWire, log };
  const { server, origin } = await listen(config, wire, (request, response) => listener(request, response));
  const baseUrl = `${origin}/v1`;
  const undo: (() => unknown)[] = [() => server.close(0)];
  try {
    const admin = await listenAdmin(config, ADMIN_PORT, wire, listener);
    undo.push(() => admin?.close());
    const stateFile = simulatorStateFile(config.database);
    const opened = await openStore(
      config.database,
      () => {
        if (!isPostgres(config.database)) assertNotServed(sqlitePath(config.database));
        checkDriver(config, stateFile);
        if (!isPostgres(config.database)) undo.push(takeServeLock(sqlitePath(config.database)));
      },
      { log, ...(shared && { hearTime: shared.hear }) },
    );
    undo.unshift(() => opened.close());
    const store = wrapStore(opened);
    const driver = await createDriver(config, catalog, { stateFile, clock, token: simulatorToken });
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
