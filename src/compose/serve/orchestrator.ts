import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadCatalog } from '../../config/load.ts';
import { packageVersion } from '../../config/package-root.ts';
import { platformsOf, sellingPlatforms } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { Environment } from '../../config/settings.ts';
import { ApiError } from '../../contract/errors.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { digestSecret, readSecret } from '../../keys/api-key.ts';
import type { AlarmRoute } from '../../operator-kit/alarms/notifier.ts';
import { ensureAccess } from '../../orchestrator/accounts/accounts.ts';
import { refuseWire } from '../../orchestrator/http/errors.ts';
import type { PlatformDriver } from '../../orchestrator/model/platform-driver.ts';
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { Failpoint } from '../../orchestrator/platform/call-platform.ts';
import { assertClockIsPastPruned } from '../../orchestrator/queue/housekeeping.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { liveOf } from '../../ports/live.ts';
import { Certificates } from '../../runtime/certificates.ts';
import { diskRoomOf } from '../../runtime/disk-room.ts';
import { createLog } from '../../runtime/log.ts';
import { systemRandom } from '../../runtime/system.ts';
import { openTracing } from '../../runtime/tracing/open-tracing.ts';
import { PlatformChecks } from '../doctor/platform-checks.ts';
import { configuredDrivers } from '../drivers/driver-settings.ts';
import type { MakeBackup } from '../server/backups.ts';
import { createServerClock, type ServerClock } from '../server/clock.ts';
import { orchestratorStores } from '../stores/orchestrator.ts';
import { auditServer } from './audit-server.ts';
import { startWithAdmin } from './orchestrator-admin.ts';
import { reloadOf } from './reload.ts';
import { openToServe, type Served, serve } from './serve.ts';

/** The actor of a reload by signal. */
const SIGNAL = { name: 'SIGHUP', source: 'server', address: null } as const;

export interface ServeOptions {
  config: Config;
  env: Environment;
  /** The process's original umask. Absent if it is unchanged. */
  umask?: number;
  /** Loads the configuration again, for a reload. Without it, the configuration does not change. @throws {Fatal} */
  load?: () => Config;
  /** Copies the database, where `backups` of the configuration asks for it. */
  makeBackup?: MakeBackup;
}

const ADMIN_PORT = 9080;

/** Ports that a test build replaces. Production uses the defaults. */
export interface ServePorts {
  clock?: Clock;
  random?: Random;
  failpoint?: Failpoint;
  wrapStore?: (store: Store) => Store;
}

export interface Serving extends Served {
  /** Reloads the catalog, as at SIGHUP. @throws {Fatal} with all problems; then nothing has changed. */
  reload(): Promise<void>;
  /** The key created at the first start, to be shown once. */
  apiKey: string | null;
  catalogFile: string;
}

/** Serves the orchestrator. @throws {Fatal} with a sentence for the operator */
export async function serveOrchestrator(
  { config, env, umask, load = () => config, makeBackup }: ServeOptions,
  ports: ServePorts = {},
): Promise<Serving> {
  const given = readEnvironmentKey(env);
  const platforms = platformsOf(config);
  const sold = liveOf(loadCatalog(config.catalog, sellingPlatforms(config)));
  const catalog = sold.value;
  const log = createLog(config.log_level);
  const { clock, storeOptions }: ServerClock =
    ports.clock === undefined
      ? createServerClock(config.database, log)
      : { clock: ports.clock, storeOptions: {} };
  const { random = systemRandom, failpoint = () => undefined, wrapStore = (store) => store } = ports;
  const certificates = new Certificates({ clock, log });
  const opening = configuredDrivers(config, { catalog, env, umask, clock, log, certificates });
  const { product, ...served } = await serve(
    {
      config,
      log,
      adminPort: ADMIN_PORT,
      certificates,
      basePath: '/v1',
      nextId: requestIds(random),
      refuse: refuseWire,
      notReady: { error: new ApiError('unavailable', 'The orchestrator is starting; try again.') },
      facts: { catalog: config.catalog, ...factsOf(platforms) },
    },
    async (undo) => {
      const check = (): void => {
        for (const { definition, options, setting } of opening) {
          definition.check(options, setting);
          definition.checkCatalog?.(options, setting.catalog);
        }
      };
      const opened = await openToServe(orchestratorStores, config.database, undo, {
        check,
        log,
        ...storeOptions,
      });
      const store = wrapStore(opened);
      const tracing = await openTracing(env, { service: 'berth', version: packageVersion(), log });
      undo.unshift(() => tracing?.close());
      await assertClockIsPastPruned(store, platforms.keys(), clock.now());
      const drivers = new Map<string, PlatformDriver>();
      for (const { platform, definition, options, setting } of opening) {
        const driver = await definition.open(options, setting);
        undo.unshift(() => driver.close());
        drivers.set(platform, driver);
      }
      const { apiKey, accountId } = await ensureAccess({ store, clock, random }, given);
      if (given !== undefined && accountId === null)
        log.warn(
          'BERTH_API_KEY is not accepted: the account "default" was deleted for good. Remove the variable, or create that account again',
        );
      const environmentKey = given && accountId !== null ? { digest: given, accountId } : undefined;
      const parts = {
        config,
        catalog,
        store,
        drivers,
        environmentKey,
        clock,
        random,
        log,
        failpoint,
        reload: reloadOf({ config, load, catalog: sold, drivers: opening }),
        tracing,
        makeBackup,
        diskRoom: isPostgres(config.database) ? undefined : () => diskRoomOf(folderOf(config.database)),
        certificates,
        alarmRoutes: await alarmRoutesOf(config, env, clock),
      };
      const checks = new PlatformChecks(opening, clock);
      undo.unshift(() => checks.stop());
      const started = await startWithAdmin(parts, checks);
      await auditServer(parts, 'server.start');
      undo.unshift(() => auditServer(parts, 'server.stop'));
      return { ...started, apiKey };
    },
  );
  const reload = async (): Promise<void> => void (await product.reload(SIGNAL));
  return { ...served, reload, apiKey: product.apiKey, catalogFile: config.catalog };
}

/**
 * Returns the folder of the server's files: that of the SQLite file, or with PostgreSQL one in the system's temporary
 * folder.
 */
function folderOf(database: string): string {
  return isPostgres(database) ? join(tmpdir(), 'berth') : dirname(sqlitePath(database));
}

/** The code of HTTP calls and mail is loaded only with a route. */
async function alarmRoutesOf(config: Config, env: Environment, clock: Clock): Promise<AlarmRoute[]> {
  if (config.alarms.routes.length === 0) return [];
  return (await import('../server/alarm-routes.ts')).createAlarmRoutes(config, env, clock);
}

/** The platforms, for the log line at startup. */
function factsOf(platforms: ReadonlyMap<string, { driver: string }>): object {
  const drivers = Object.fromEntries([...platforms].map(([name, { driver }]) => [name, driver]));
  const { [DEFAULT_PLATFORM]: platform } = drivers;
  return platforms.size === 1 && platform !== undefined ? { platform } : { platforms: drivers };
}

/**
 * Reads the API key of the environment, which is valid while this process serves.
 * @throws {Fatal} if no client could send it, or if it could be guessed
 */
function readEnvironmentKey(env: Environment): Buffer | undefined {
  const key = readSecret(env, 'BERTH_API_KEY');
  return key === undefined ? undefined : digestSecret(key);
}
