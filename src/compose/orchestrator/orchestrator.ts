import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import { platformsOf } from '../../config/platforms.ts';
import type { Config } from '../../config/schema.ts';
import { type FindProblem, readiness } from '../../http/api/operations.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { checkDisk } from '../../operator-kit/alarms/disk.ts';
import { AlarmNotifier, type AlarmRoute } from '../../operator-kit/alarms/notifier.ts';
import { FigureRecorder } from '../../operator-kit/figures/recorder.ts';
import { Operators } from '../../operator-kit/keys.ts';
import type { Actor } from '../../operator-kit/model.ts';
import type { CheckPassword } from '../../orchestrator/accounts/password-checks.ts';
import { Alarms } from '../../orchestrator/alarms/alarms.ts';
import { findSilenced } from '../../orchestrator/alarms/silenced.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import { createApp } from '../../orchestrator/http/app.ts';
import type { HttpDeps } from '../../orchestrator/http/deps.ts';
import {
  createListener,
  createPolledReadAnswers,
  type PolledReadAnswers,
} from '../../orchestrator/http/listener.ts';
import { WorkMetrics } from '../../orchestrator/http/metrics.ts';
import { alarmKindFacts } from '../../orchestrator/model/alarm.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { OrphanRequests } from '../../orchestrator/operate/actions/orphans.ts';
import { type Reloaded, Reloader } from '../../orchestrator/operate/actions/reload.ts';
import { CallCounts } from '../../orchestrator/operate/figures/call-counts.ts';
import { figureSource } from '../../orchestrator/operate/figures/source.ts';
import type { PlatformFacts } from '../../orchestrator/operate/views/platforms.ts';
import type { Failpoint } from '../../orchestrator/platform/call-platform.ts';
import { guardNotFound } from '../../orchestrator/platform/not-found-guard.ts';
import type { LossCapOptions, ReconcileOptions } from '../../orchestrator/platform/options.ts';
import { RunningEndpoints } from '../../orchestrator/platform/sightings.ts';
import { Housekeeping } from '../../orchestrator/queue/housekeeping.ts';
import {
  ensureInstallation,
  knownPlatforms,
  leftPlatforms,
} from '../../orchestrator/reconciliation/installation.ts';
import { shareRestore } from '../../orchestrator/reconciliation/restored-rows.ts';
import { type Clock, DAY_MS, type Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { SshProbe } from '../../ports/ssh-probe.ts';
import type { Tracing } from '../../ports/tracing.ts';
import { Certificates } from '../../runtime/certificates.ts';
import type { DiskRoom } from '../../runtime/disk-room.ts';
import { withPromptReads } from '../../runtime/prompt-reads.ts';
import { WriteHealth, withOneStoreAlarm } from '../../runtime/write-health.ts';
import { isClockInSync } from '../../work/lease-time.ts';
import { type MakeBackup, scheduledBackups } from '../server/backups.ts';
import { certificateAlarms } from '../server/certificate-alarms.ts';
import { composeHttp } from './http-deps.ts';
import {
  composeWork,
  createPlatformStates,
  type Drivers,
  type PlatformStates,
  type ReconcileChanges,
  toReconcileOptions,
} from './platforms.ts';
import { telemetryOf } from './telemetry.ts';

export interface OrchestratorDeps {
  config: Config;
  catalog: Catalog;
  /** What differs from the default options of the durable work. */
  reconcile?: ReconcileChanges;
  store: Store;
  /** Drivers by platform name. The first one serves offers that name no platform. */
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
  /** Reloads the catalog and applies it. Without it, a reload changes nothing. @throws {Fatal} */
  reload?: () => Reloaded;
  tracing?: Tracing | undefined;
  /** Returns the free space on the database's disk. Absent if the database is on another machine. */
  diskRoom?: (() => Promise<DiskRoom | undefined>) | undefined;
  /** Copies the database, where the configuration has a schedule for it. */
  makeBackup?: MakeBackup | undefined;
  /** Already known certificates; default: none. */
  certificates?: Certificates;
  /** Whether it keeps figures over time, for an admin listener. */
  keepsFigures?: boolean;
  /** Who is told about alarms; default: nobody. The orchestrator closes them. */
  alarmRoutes?: readonly AlarmRoute[];
}

/** What an admin listener needs. The rest of its code is loaded only with that listener. */
interface AdminParts {
  http: HttpDeps;
  store: Store;
  operators: Operators;
  platforms: PlatformStates;
  facts: ReadonlyMap<string, Omit<PlatformFacts, 'placesOnHosts'>>;
  maxLosses: LossCapOptions;
  findProblem: FindProblem;
  nextId: () => string;
  server: string;
  alarmRoutes: () => readonly AlarmRoute[];
}

export interface Orchestrator {
  /** The API's app. It answers in process, through `app.request()`. */
  app: ReturnType<typeof createApp>;
  adminParts: AdminParts;
  /** The direct answers to polled reads, which the listener tries before the app. */
  polls: PolledReadAnswers;
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
  const deps = await withDefaults(given);
  const { clock, random, store, alarms, certificates, writes } = deps;
  const options = toReconcileOptions(deps.config, deps.reconcile);
  const calls = deps.keepsFigures ? new CallCounts() : undefined;
  const platforms = createPlatformStates(deps.drivers, {
    ...deps,
    options,
    telemetryOf: telemetryOf(deps.work, calls, deps.tracing),
  });
  const { installationId, unserved } = await identify(deps);
  const sightings = [...platforms.values()].map((platform) => platform.sightings);
  const http = composeHttp(
    { ...deps, store: guardNotFound(withPromptReads(store), sightings, unserved) },
    platforms,
  );
  const work = composeWorks(deps, { platforms, options, installationId });
  const isInSync = (): boolean => isClockInSync(clock, options);
  // Some operator views read all rows. They have no time limit while the database answers other reads.
  const operated = withPromptReads(store, { prove: () => store.read.marks.get('reload_requested_at') });
  const operators = new Operators({ store: operated, clock, log: deps.log });
  const sampled = { supply: http.supply, platforms: [...platforms.keys()] };
  const figures =
    calls && new FigureRecorder({ ...deps, source: figureSource({ ...deps, ...sampled, calls }) });
  const { reloader, housekeeping, notifier } = composeUpkeep(deps, {
    figures,
    authenticators: [http.authenticator, operators],
    orphanActions: work.orphanActions,
    prunable: () => (isInSync() ? searchedUntil(platforms) : new Map()),
  });
  const nextId = requestIds(random);
  let isServing = true;
  const findProblem = readiness({
    isServing: () => isServing,
    writes,
    readStore: () => http.store.read.work.backlog(),
    findOther: () => (isInSync() ? undefined : "the clock is too far from the database's"),
  });
  const app = createApp(http, { nextId, findProblem });
  await store.takeOverWork(clock.now());
  await alarms.sync();
  await reloader.begin();
  await work.start();
  housekeeping.start();
  notifier.start();
  certificates.start(certificateAlarms(alarms));
  const polls = createPolledReadAnswers({ ...http, nextId });
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
      server: alarms.server,
      alarmRoutes: () => deps.alarmRoutes,
    },
    polls,
    listener: createListener(app, polls, { ...http, nextId }),
    reload: (actor) => reloader.reload(actor),
    beginDrain: () => {
      isServing = false;
      http.failedLogins.close();
      // Work stops while requests finish, so that both have the whole of drain_s. `close` handles its rejection.
      work.stop().catch(() => undefined);
    },
    close: async () => {
      http.failedLogins.close();
      http.passwordChecks.close();
      // Both stop concurrently: a platform that does not answer uses up the time limit.
      await Promise.all([housekeeping.stop(), work.stop(), notifier.stop()]);
      await figures?.stop();
      certificates.stop();
      await alarms.sync();
      await alarms.close();
      http.polledReads.close();
      http.authenticator.close();
      writes.stop();
    },
  };
}

type Deps = Awaited<ReturnType<typeof withDefaults>>;

/** Adds defaults for what is not given. Failures of the database are then logged once. */
async function withDefaults(given: OrchestratorDeps) {
  const { clock } = given;
  const writes = new WriteHealth({ clock, log: given.log, prove: () => given.store.proveWrites() });
  const { transact, claimWork } = given.store;
  const store = { ...given.store, ...writes.of({ transact, claimWork }) };
  const log = withOneStoreAlarm(given.log);
  const alarms = new Alarms({ store, clock, log, server: hostname() });
  // The default probe's SSH client is a fifth of all code. It is not loaded if another probe is given.
  const { probe = (await import('../../ssh/probe.ts')).createSshProbe() } = given;
  const { certificates = new Certificates({ clock, log }), alarmRoutes = [] } = given;
  return { ...given, alarmRoutes, log, probe, store, writes, alarms, work: new WorkMetrics(), certificates };
}

/** Reads the id of the installation, and the known platforms that no driver serves. */
async function identify(deps: Deps): Promise<{ installationId: string; unserved: readonly string[] }> {
  const { drivers, config, store } = deps;
  const driverNames = new Map([...drivers].map(([name, { manifest }]) => [name, manifest.name]));
  const installation = await ensureInstallation(deps, driverNames, settingsOf(config));
  const known = new Set([...drivers.keys(), ...knownPlatforms(installation)]);
  await shareRestore(store, [...known]);
  const unserved = [...known].filter((name) => !drivers.has(name));
  await warnOfLeft(deps, unserved);
  return { installationId: installation.id, unserved };
}

/**
 * Composes the durable work of all platforms. They start and stop concurrently: one that does not answer must not delay
 * the others.
 */
function composeWorks(
  deps: Deps,
  { platforms, ...parts }: { platforms: PlatformStates; options: ReconcileOptions; installationId: string },
) {
  const endpoints = new RunningEndpoints();
  const works = [...platforms].map(([name, state]) => {
    const others = new Set([...platforms.keys()].filter((other) => other !== name));
    return composeWork(name, state, others, { ...deps, ...parts, endpoints });
  });
  let stopping: Promise<unknown> | undefined;
  return {
    orphanActions: new Map(works.map((work) => [work.platform, work.actOnOrphan])),
    start: () => Promise.all(works.map((work) => work.start())),
    stop(): Promise<unknown> {
      for (const work of works) work.stopListing();
      stopping ??= Promise.all(works.map((work) => work.stop()));
      return stopping;
    },
  };
}

/** Composes reloads and the periodic jobs beside the platforms' work. */
function composeUpkeep(
  {
    config,
    store,
    clock,
    log,
    alarms,
    reload = () => nothingToReload(config),
    diskRoom,
    makeBackup,
    alarmRoutes,
  }: Deps,
  {
    orphanActions: act,
    figures,
    ...parts
  }: Pick<ConstructorParameters<typeof Housekeeping>[0], 'authenticators' | 'prunable'> & {
    orphanActions: ConstructorParameters<typeof OrphanRequests>[0]['act'];
    figures: FigureRecorder | undefined;
  },
) {
  const orphanRequests = new OrphanRequests({ store, clock, log, alarms, act });
  const reloader = new Reloader({ store, clock, log, alarms, load: reload });
  const backups = scheduledBackups({
    ...{ backups: config.backups, product: 'berth', clock, log, alarms, make: makeBackup },
  });
  const { tombstones_days, history_days, audit_days } = config.retention;
  const housekeeping = new Housekeeping({
    store,
    clock,
    log,
    alarms,
    ...parts,
    tombstonesKeptMs: tombstones_days * DAY_MS,
    historyKeptMs: history_days * DAY_MS,
    auditKeptMs: audit_days * DAY_MS,
    also: async () => {
      const room = await diskRoom?.();
      if (room !== undefined) checkDisk(alarms, room);
      void backups?.poll();
      await reloader.poll();
      await orphanRequests.poll();
      await figures?.run();
    },
  });
  const notifier = new AlarmNotifier({
    ...{ store, clock, log, alarms, kinds: alarmKindFacts, routes: alarmRoutes },
    findSilenced: (open) => findSilenced({ store, clock }, open),
  });
  return { reloader, housekeeping, notifier };
}

function nothingToReload({ catalog }: Config): Reloaded {
  return { catalog, added: [], removed: [], changed: [], needs_restart: [] };
}

/** The connection settings of each platform, so that swapped names are detected. */
function settingsOf(config: Config): ReadonlyMap<string, string> {
  return new Map([...platformsOf(config)].map(([name, options]) => [name, JSON.stringify(options)]));
}

/**
 * Warns of resources on removed platforms. Berth does not list these platforms, so a machine that they finish late
 * stays and costs money.
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
function platformFacts(platforms: PlatformStates): AdminParts['facts'] {
  return new Map(
    [...platforms].map(([name, { driver, inventory }]) => {
      const counts = driver.inventory === undefined ? {} : { inventory };
      return [name, { driver: driver.manifest.name, ...counts }];
    }),
  );
}

/**
 * Until when each platform was searched, without those whose tombstones are all needed. On a platform that keeps no notes,
 * only the tombstone identifies the owner of a late machine.
 */
function searchedUntil(platforms: PlatformStates): ReadonlyMap<string, number> {
  return new Map(
    [...platforms].flatMap(([name, { driver, sightings }]) => {
      const until = driver.manifest.keepsNotes === true ? sightings.searchedUntil : null;
      return until === null ? [] : [[name, until] as const];
    }),
  );
}
