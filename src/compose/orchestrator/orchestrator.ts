import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import { packageVersion } from '../../config/package-root.ts';
import { platformsOf } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { ApiError } from '../../contract/errors.ts';
import { ListStreams } from '../../http/api/list-streams.ts';
import { type FindProblem, readiness } from '../../http/api/operations.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { Operators } from '../../operators/keys.ts';
import type { Actor } from '../../operators/model.ts';
import { Authenticator } from '../../orchestrator/accounts/authenticate.ts';
import { type CheckPassword, PasswordChecks } from '../../orchestrator/accounts/password-checks.ts';
import { Alarms } from '../../orchestrator/alarms/alarms.ts';
import { checkDisk } from '../../orchestrator/alarms/disk-low.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { ChangeWaits } from '../../orchestrator/changes/change-waits.ts';
import { createApp } from '../../orchestrator/http/app.ts';
import type { HttpDeps } from '../../orchestrator/http/deps.ts';
import { FailedLogins } from '../../orchestrator/http/failed-logins.ts';
import { createListener } from '../../orchestrator/http/listener.ts';
import { Metrics } from '../../orchestrator/http/metrics.ts';
import { RateLimits } from '../../orchestrator/http/rate-limits.ts';
import { WorkMetrics } from '../../orchestrator/http/work-metrics.ts';
import { PolledReads } from '../../orchestrator/instances/polled-reads.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { OrphanRequests } from '../../orchestrator/operate/actions/orphans.ts';
import { type Reloaded, Reloader } from '../../orchestrator/operate/actions/reload.ts';
import type { PlatformFacts } from '../../orchestrator/operate/views/platforms.ts';
import type { Failpoint } from '../../orchestrator/platform/call-platform.ts';
import { guardNotFound } from '../../orchestrator/platform/not-found-guard.ts';
import { isClockInSync, type LossCapOptions } from '../../orchestrator/platform/options.ts';
import { RunningEndpoints } from '../../orchestrator/platform/running-endpoints.ts';
import { Housekeeping } from '../../orchestrator/queue/housekeeping.ts';
import {
  ensureInstallation,
  knownPlatforms,
  leftPlatforms,
} from '../../orchestrator/reconciliation/installation.ts';
import { shareRestore } from '../../orchestrator/reconciliation/restore-marks.ts';
import { type Clock, DAY_MS, type Random } from '../../ports/clock.ts';
import type { ListFiles } from '../../ports/list-files.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Tracing } from '../../ports/tracing.ts';
import { withOverrides } from '../../ports/with-overrides.ts';
import { Certificates } from '../../runtime/certificates.ts';
import type { DiskRoom } from '../../runtime/disk-room.ts';
import { withPromptReads } from '../../runtime/prompt-reads.ts';
import { withOneStoreAlarm } from '../../runtime/store-alarm.ts';
import { WriteHealth } from '../../runtime/write-health.ts';
import { certificateAlarms } from './certificate-alarms.ts';
import { toReconcileOptions } from './options.ts';
import {
  composeWork,
  createPlatformStates,
  type Drivers,
  manifestsOf,
  type PlatformStates,
  saleOf,
} from './platforms.ts';
import { telemetryOf } from './telemetry.ts';

export interface OrchestratorDeps {
  config: Config;
  catalog: Catalog;
  store: Store;
  /** By platform name. The first serves offers that name no platform. */
  drivers: Drivers;
  /** The SSH proof; default: production's. */
  probe?: SshProbe;
  /** The password check; default: production's. */
  checkPassword?: CheckPassword;
  environmentKey: { digest: Buffer; accountId: string } | undefined;
  clock: Clock;
  random: Random;
  log: Log;
  failpoint: Failpoint;
  /** Reloads the catalog and applies it. @throws {Fatal} Absent: a reload changes nothing. */
  reload?: () => Reloaded;
  tracing?: Tracing | undefined;
  /** Stores lists that are too long for an alarm. Absent: they are not stored. */
  lists?: ListFiles;
  /** The free space on the database's disk; absent: the database is on another machine. */
  diskRoom?: (() => Promise<DiskRoom | undefined>) | undefined;
  /** Already known certificates; default: none. */
  certificates?: Certificates;
}

/** The parts of an admin listener. Nothing else of it is loaded without one. */
interface AdminParts {
  http: HttpDeps;
  store: Store;
  operators: Operators;
  platforms: PlatformStates;
  facts: ReadonlyMap<string, PlatformFacts>;
  maxLosses: LossCapOptions;
  findProblem: FindProblem;
  nextId: () => string;
  server: string;
}

export interface Orchestrator {
  /** Answers in process, through `app.request()`. */
  app: ReturnType<typeof createApp>;
  adminParts: AdminParts;
  listener: RequestListener;
  /** Reloads the catalog. @throws {Fatal} with all problems; then nothing has changed. */
  reload(actor: Actor): Promise<Reloaded>;
  /** Makes the server not ready. Requests are still answered. */
  beginDrain(): void;
  /** Waits for running steps to end. The caller closes the store and the drivers. */
  close(): Promise<void>;
}

/** Composes an orchestrator and starts its durable work. */
export async function startOrchestrator(given: OrchestratorDeps): Promise<Orchestrator> {
  const { clock, random } = given;
  const writes = new WriteHealth({ clock, log: given.log, prove: () => given.store.proveWrites() });
  const store = withWriteHealth(given.store, writes);
  const log = withOneStoreAlarm(given.log);
  const server = hostname();
  const alarms = new Alarms({ store, clock, log, server, lists: given.lists });
  const work = new WorkMetrics();
  // The default probe's SSH client is a fifth of all code. It is not loaded if another probe is given.
  const { probe = (await import('../../ssh/probe.ts')).createSshProbe() } = given;
  const { certificates = new Certificates({ clock, log }) } = given;
  const deps = { ...given, log, probe, store, alarms, work, certificates };
  const options = toReconcileOptions(deps.config);
  const platforms = createPlatformStates(deps.drivers, {
    ...deps,
    options,
    telemetryOf: telemetryOf(work, given.tracing),
  });
  const sightings = [...platforms.values()].map((platform) => platform.sightings);
  const names = [...deps.drivers.keys()];
  const driverNames = new Map([...deps.drivers].map(([name, { manifest }]) => [name, manifest.name]));
  const installation = await ensureInstallation(deps, driverNames, settingsOf(deps.config));
  const { id: installationId } = installation;
  const known = new Set([...names, ...knownPlatforms(installation)]);
  await shareRestore(store, [...known]);
  const unserved = [...known].filter((name) => !deps.drivers.has(name));
  await warnOfLeft(deps, unserved);
  const http = composeHttp(
    { ...deps, store: guardNotFound(withPromptReads(store), sightings, unserved), writes },
    platforms,
  );
  const endpoints = new RunningEndpoints();
  const works = [...platforms].map(([name, state]) => {
    const others = new Set(names.filter((other) => other !== name));
    return composeWork(name, state, others, { ...deps, options, installationId, endpoints });
  });
  const act = new Map(works.map((work) => [work.platform, work.actOnOrphan]));
  const orphanRequests = new OrphanRequests({ store, clock, log, alarms, act });
  // Some operator views read all rows. They may take as long as the database answers other reads.
  const operated = withPromptReads(store, { prove: () => store.read.marks.get('reload_requested_at') });
  const operators = new Operators({ store: operated, clock, log });
  const { reload: load = () => nothingToReload(deps.config) } = deps;
  const reloader = new Reloader({ store, clock, log, alarms, load });
  const housekeeping = new Housekeeping({
    store,
    clock,
    log,
    authenticators: [http.authenticator, operators],
    alarms,
    tombstonesKeptMs: deps.config.retention.tombstones_days * DAY_MS,
    historyKeptMs: deps.config.retention.history_days * DAY_MS,
    auditKeptMs: deps.config.retention.audit_days * DAY_MS,
    prunable: () =>
      new Map(
        isClockInSync(clock, options) ? names.map((name) => [name, searchedUntil(platforms, name)]) : [],
      ),
    also: async () => {
      const room = await given.diskRoom?.();
      if (room !== undefined) checkDisk(alarms, room);
      await reloader.poll();
      await orphanRequests.poll();
    },
  });
  const nextId = requestIds(random);
  let isServing = true;
  let stopping: Promise<unknown> | undefined;
  const stopWorks = (): Promise<unknown> => {
    for (const work of works) work.stopListing();
    stopping ??= Promise.all(works.map((work) => work.stop()));
    return stopping;
  };
  const findProblem = readiness({
    isServing: () => isServing,
    writes,
    readStore: () => http.store.read.work.backlog(),
    findOther: () => (isClockInSync(clock, options) ? undefined : "the clock is too far from the database's"),
  });
  const app = createApp(http, { nextId, findProblem, hasDocs: deps.config.server.docs });
  await store.endAbandonedLeases();
  await alarms.sync();
  await reloader.begin();
  // Concurrently: a platform that does not answer must not delay the others.
  await Promise.all(works.map((work) => work.start()));
  housekeeping.start();
  certificates.start(certificateAlarms(alarms));
  return {
    app,
    adminParts: {
      http,
      store: operated,
      operators,
      platforms,
      facts: platformFacts(platforms),
      maxLosses: options.maxLosses,
      findProblem,
      nextId,
      server,
    },
    listener: createListener(app, { ...http, nextId }),
    reload: (actor) => reloader.reload(actor),
    beginDrain: () => {
      isServing = false;
      http.failedLogins.close();
      http.changeWaits.close();
      // Runs while requests finish, so that both have the whole of drain_s. Its rejection is handled in `close`.
      stopWorks().catch(() => undefined);
    },
    close: async () => {
      http.failedLogins.close();
      http.changeWaits.close();
      http.passwordChecks.close();
      // Concurrently: a platform that does not answer uses up the time limit.
      await Promise.all([housekeeping.stop(), stopWorks()]);
      certificates.stop();
      await alarms.sync();
      await alarms.close();
      http.polledReads.close();
      writes.stop();
    },
  };
}

function nothingToReload({ catalog }: Config): Reloaded {
  return { catalog, added: [], removed: [], changed: [], needsRestart: [] };
}

/** The connection settings of each platform, so that swapped names are detected. */
function settingsOf(config: Config): ReadonlyMap<string, string> {
  return new Map([...platformsOf(config)].map(([name, options]) => [name, JSON.stringify(options)]));
}

/**
 * Warns of platforms that are no longer configured. They are not listed, so a create that they complete late costs
 * money and is not removed.
 */
async function warnOfLeft(
  { store, log }: Pick<OrchestratorDeps, 'store' | 'log'>,
  unserved: readonly string[],
): Promise<void> {
  for (const left of await leftPlatforms(store.read, unserved))
    log.warn(
      left,
      'the configuration no longer has a platform of this name: Berth does not check there for machines and volumes that ended rows have left. ' +
        'Check with its own tools that no machine or volume of Berth is left, or configure it again',
    );
}

/** Facts about the platforms for the operator's API. */
function platformFacts(platforms: PlatformStates): ReadonlyMap<string, PlatformFacts> {
  return new Map(
    [...platforms].map(([name, { driver, inventory }]) => {
      const counts = driver.inventory === undefined ? {} : { inventory };
      return [name, { driver: driver.manifest.name, ...counts }];
    }),
  );
}

/** Without notes, only the tombstone identifies the owner of a late machine. */
function searchedUntil(platforms: PlatformStates, name: string): number {
  const state = platforms.get(name);
  return state?.driver.manifest.keepsNotes === true
    ? state.sightings.searchedUntil
    : Number.NEGATIVE_INFINITY;
}

function withWriteHealth(store: Store, writes: WriteHealth): Store {
  return withOverrides(store, {
    transact: (body) => writes.attempt(() => store.transact(body)),
    claimWork: (claim) => writes.attempt(() => store.claimWork(claim)),
  });
}

function composeHttp(
  {
    config,
    catalog,
    store,
    drivers,
    checkPassword,
    environmentKey,
    clock,
    random,
    log,
    writes,
    alarms,
    work,
    tracing,
    diskRoom,
    certificates,
  }: OrchestratorDeps & {
    writes: WriteHealth;
    alarms: Alarms;
    work: WorkMetrics;
    certificates: Certificates;
  },
  platforms: PlatformStates,
): HttpDeps {
  const { rate_limits: limits, quotas } = config;
  const toBucket = (bucket: { per_second: number; burst: number }) => ({
    perSecond: bucket.per_second,
    burst: bucket.burst,
  });
  const sale = saleOf(platforms);
  const version = packageVersion();
  return {
    store,
    catalog,
    clock,
    random,
    log,
    platform: sale,
    manifests: manifestsOf(drivers),
    authenticator: new Authenticator({ store, clock, environmentKey }),
    polledReads: new PolledReads(store),
    rateLimits: new RateLimits(clock, {
      enabled: limits.enabled,
      pollsPerInstance: toBucket(limits.polls_per_instance),
      requestsPerAccount: toBucket(limits.requests_per_account),
      createsPerAccount: toBucket(limits.creates_per_account),
      tokensPerAccount: toBucket(limits.tokens_per_account),
    }),
    listStreams: new ListStreams(
      (limit, retryAfterSeconds) =>
        new ApiError(
          'too_many_requests',
          `${limit} long lists of this account are in progress; read them to the end and try again.`,
          { retryAfterSeconds },
        ),
    ),
    changeWaits: new ChangeWaits({ store, clock }),
    passwordChecks: new PasswordChecks(random, checkPassword),
    failedLogins: new FailedLogins(clock, limits),
    metrics: new Metrics({
      version,
      store,
      clock,
      platforms,
      writes,
      alarms,
      work,
      catalog,
      sale,
      certificates,
      diskRoom,
    }),
    tokenTtlMs: config.auth.token_ttl_s * 1000,
    quotas: {
      instances: quotas.instances,
      volumes: quotas.volumes,
      storageGb: quotas.storage_gb,
      liveTokens: quotas.live_tokens,
    },
    maxBodyBytes: config.limits.max_body_bytes,
    trustedProxies: config.server.trusted_proxies,
    tracing,
  };
}
