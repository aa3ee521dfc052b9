import type { RequestListener } from 'node:http';
import { packageVersion } from '../config/package-root.ts';
import type { Config } from '../config/schema.ts';
import { adminApp, readiness } from '../http/api/operations.ts';
import { requestIds } from '../http/api/request-context.ts';
import { Authenticator } from '../orchestrator/accounts/authenticate.ts';
import { PasswordChecks } from '../orchestrator/accounts/password-checks.ts';
import type { Catalog } from '../orchestrator/catalog/catalog.ts';
import { createApp, createListener } from '../orchestrator/http/app.ts';
import type { HttpDeps } from '../orchestrator/http/deps.ts';
import { FailedLogins } from '../orchestrator/http/failed-logins.ts';
import { ListStreams } from '../orchestrator/http/list-streams.ts';
import { Metrics } from '../orchestrator/http/metrics.ts';
import { RateLimits } from '../orchestrator/http/rate-limits.ts';
import { PolledReads } from '../orchestrator/instances/polled-reads.ts';
import type { PlatformDriver } from '../orchestrator/model/platform-driver.ts';
import type { Store } from '../orchestrator/model/store.ts';
import type { Failpoint } from '../orchestrator/platform/call-platform.ts';
import { DriftDetector } from '../orchestrator/platform/drift-detector.ts';
import { ExpectedMachines } from '../orchestrator/platform/expected-machines.ts';
import { LossCap } from '../orchestrator/platform/loss-cap.ts';
import { guardNotFound, NotFoundGuard } from '../orchestrator/platform/not-found-guard.ts';
import { isClockInSync, type ReconcileOptions } from '../orchestrator/platform/options.ts';
import { PlatformHealth } from '../orchestrator/platform/platform-health.ts';
import { RestoreHold } from '../orchestrator/platform/restore-hold.ts';
import { SharedListing } from '../orchestrator/platform/shared-listing.ts';
import { judgeMachines, judgeVolumes } from '../orchestrator/platform/validate-listing.ts';
import { Housekeeping } from '../orchestrator/queue/housekeeping.ts';
import { Reconciler } from '../orchestrator/queue/reconciler.ts';
import { ensureInstallation } from '../orchestrator/recovery/installation.ts';
import { Recovery } from '../orchestrator/recovery/recovery.ts';
import type { Clock, Random } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { SshProbe } from '../ports/ssh-probe.ts';
import { withOverrides } from '../ports/with-overrides.ts';
import { WriteHealth } from '../runtime/write-health.ts';
import { createSshProbe } from '../ssh/probe.ts';
import { DAY_MS, toReconcileOptions } from './options.ts';

export interface OrchestratorDeps {
  config: Config;
  catalog: Catalog;
  store: Store;
  driver: PlatformDriver;
  /** How SSH is proved; production's own where it is left out. */
  probe?: SshProbe;
  environmentKey: { digest: Buffer; accountId: string } | undefined;
  clock: Clock;
  random: Random;
  log: Log;
  failpoint: Failpoint;
}

export interface Orchestrator {
  /** Answers in process, through `app.request()`. */
  app: ReturnType<typeof createApp>;
  /** What the admin listener answers with. */
  admin: ReturnType<typeof adminApp>;
  listener: RequestListener;
  /** From now on not ready; requests are still answered. */
  beginDrain(): void;
  /** Lets the steps that run end. The store and the driver are the caller's. */
  close(): Promise<void>;
}

/** Composes an orchestrator and starts its durable work. */
export async function startOrchestrator(given: OrchestratorDeps): Promise<Orchestrator> {
  const { clock, random, log } = given;
  const writes = new WriteHealth({ clock, log, prove: () => given.store.proveWrites() });
  const store = withWriteHealth(given.store, writes);
  const deps = { ...given, store };
  const health = new PlatformHealth({ store, clock, log });
  const options = toReconcileOptions(deps.config);
  const losses = new LossCap({ clock, log, options });
  const notFoundGuard = new NotFoundGuard();
  const http = composeHttp(
    { ...deps, store: guardNotFound(store, notFoundGuard), notFoundGuard, writes },
    health,
    losses,
  );
  const { id: installationId } = await ensureInstallation(deps, deps.driver.manifest);
  const parts = { ...deps, options, installationId, health, losses, notFoundGuard };
  const { reconciler, driftDetector, recovery, stopListing } = composeReconcile(parts);
  const housekeeping = new Housekeeping({
    store,
    clock,
    log,
    authenticator: http.authenticator,
    tombstonesKeptMs: deps.config.retention.tombstones_days * DAY_MS,
    // Without notes a tombstone is all that tells whose a late machine is.
    mayPrune: () =>
      deps.driver.manifest.keepsNotes && notFoundGuard.areRowsComplete && isClockInSync(clock, options),
  });
  const nextId = requestIds(random);
  let isServing = true;
  const findProblem = readiness({
    isServing: () => isServing,
    writes,
    readStore: () => http.store.read.work.backlog(),
    findOther: () => (isClockInSync(clock, options) ? undefined : "the clock is too far from the database's"),
  });
  const app = createApp(http, { nextId, findProblem, hasDocs: deps.config.server.docs });
  const admin = adminApp(findProblem, http.metrics);
  await recovery.start(await driftDetector.start());
  housekeeping.start();
  return {
    app,
    admin,
    listener: createListener(app, { ...http, nextId }),
    beginDrain: () => {
      isServing = false;
      http.failedLogins.close();
    },
    close: async () => {
      stopListing();
      http.failedLogins.close();
      http.passwordChecks.close();
      await recovery.stop();
      await driftDetector.stop();
      await reconciler.stop();
      await housekeeping.stop();
      http.polledReads.close();
      writes.stop();
    },
  };
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
    driver,
    environmentKey,
    clock,
    random,
    log,
    notFoundGuard,
    writes,
  }: OrchestratorDeps & { notFoundGuard: NotFoundGuard; writes: WriteHealth },
  platform: PlatformHealth,
  losses: LossCap,
): HttpDeps {
  const { rate_limits: limits, quotas } = config;
  const toBucket = (bucket: { per_second: number; burst: number }) => ({
    perSecond: bucket.per_second,
    burst: bucket.burst,
  });
  return {
    store,
    catalog,
    clock,
    random,
    log,
    platform: {
      get isOpen() {
        return platform.isUp && notFoundGuard.areClaimsComplete;
      },
      unclaimedUnits: (offerId, region) => notFoundGuard.unclaimedUnits(offerId, region),
      get areStorageClaimsComplete() {
        return notFoundGuard.areStorageClaimsComplete;
      },
      unclaimedStorageGb: (region) => notFoundGuard.unclaimedStorageGb(region),
    },
    manifest: driver.manifest,
    authenticator: new Authenticator({ store, clock, environmentKey }),
    polledReads: new PolledReads(store),
    rateLimits: new RateLimits(clock, {
      enabled: limits.enabled,
      pollsPerInstance: toBucket(limits.polls_per_instance),
      requestsPerAccount: toBucket(limits.requests_per_account),
      createsPerAccount: toBucket(limits.creates_per_account),
      tokensPerAccount: toBucket(limits.tokens_per_account),
    }),
    listStreams: new ListStreams(),
    passwordChecks: new PasswordChecks(random),
    failedLogins: new FailedLogins(clock, limits),
    metrics: new Metrics({ version: packageVersion(), store, clock, platform, losses, writes }),
    tokenTtlMs: config.auth.token_ttl_s * 1000,
    quotas: {
      instances: quotas.instances,
      volumes: quotas.volumes,
      storageGb: quotas.storage_gb,
      liveTokens: quotas.live_tokens,
    },
    maxBodyBytes: config.limits.max_body_bytes,
    trustedProxies: config.server.trusted_proxies,
  };
}

interface Reconciling {
  reconciler: Reconciler;
  driftDetector: DriftDetector;
  recovery: Recovery;
  /** Lets go whoever waits for a listing. */
  stopListing: () => void;
}

function composeReconcile(
  deps: OrchestratorDeps & {
    options: ReconcileOptions;
    installationId: string;
    health: PlatformHealth;
    losses: LossCap;
    notFoundGuard: NotFoundGuard;
  },
): Reconciling {
  const { driver } = deps;
  const base = { ...deps, probe: deps.probe ?? createSshProbe() };
  const expected = new ExpectedMachines(deps.store);
  const machines = new SharedListing(base, () => driver.list(), judgeMachines(base, expected));
  const { volumes: volumeDriver } = driver;
  // A revoked key shows no volumes, as a platform does that has none: only the machines tell the one from the other.
  const showsMachines = async (): Promise<boolean> => (await machines.observe()) !== null;
  const volumes =
    volumeDriver && new SharedListing(base, () => volumeDriver.list(), judgeVolumes(base), showsMachines);
  const context = { ...base, machines, volumes, restoreHold: new RestoreHold() };
  const reconciler = new Reconciler(context);
  return {
    reconciler,
    driftDetector: new DriftDetector(context, expected),
    recovery: new Recovery(context, () => reconciler.start()),
    stopListing: () => {
      machines.stop();
      volumes?.stop();
    },
  };
}
