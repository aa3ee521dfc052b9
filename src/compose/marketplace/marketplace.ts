import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import { packageVersion } from '../../config/package-root.ts';
import type { Backups } from '../../config/server-schema.ts';
import { adminApp, readiness } from '../../http/api/operations.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { createEnforcement } from '../../marketplace/deployments/enforcement.ts';
import { createStandingOrders } from '../../marketplace/deployments/standing-orders.ts';
import type { Deps } from '../../marketplace/deps.ts';
import { createApp, createListener } from '../../marketplace/http/app.ts';
import { refuseWire } from '../../marketplace/http/errors.ts';
import { Metrics } from '../../marketplace/http/metrics.ts';
import { RateLimits } from '../../marketplace/http/rate-limits.ts';
import { BillingJob } from '../../marketplace/ledger/billing-job.ts';
import { MailDispatcher } from '../../marketplace/mail/dispatch.ts';
import type { Mailer } from '../../marketplace/mail/mailer.ts';
import { createStockAlerts } from '../../marketplace/mail/stock-alerts.ts';
import { type AlarmKind, alarmKindFacts } from '../../marketplace/model/alarm.ts';
import { ensureInstallationId } from '../../marketplace/model/names.ts';
import type { MarketplaceOptions, RateLimitOptions } from '../../marketplace/model/options.ts';
import type { Store } from '../../marketplace/model/store.ts';
import { AlarmWatch } from '../../marketplace/operate/alarm-watch.ts';
import { figureSource } from '../../marketplace/operate/figures/source.ts';
import { Housekeeping } from '../../marketplace/operate/housekeeping.ts';
import {
  assertNoneMissing,
  type ConfiguredProvider,
  createProviders,
  type LiveProviders,
} from '../../marketplace/providers/create-providers.ts';
import type { GpuTypes } from '../../marketplace/providers/gpu-types.ts';
import { ProviderWorkers } from '../../marketplace/sync/provider-workers.ts';
import { Authenticator } from '../../marketplace/teams/authenticate.ts';
import { Alarms } from '../../operator-kit/alarms/alarms.ts';
import { AlarmNotifier, type AlarmRoute } from '../../operator-kit/alarms/notifier.ts';
import { FigureRecorder } from '../../operator-kit/figures/recorder.ts';
import { aroundMethods } from '../../ports/around-methods.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Tracing } from '../../ports/tracing.ts';
import { Certificates } from '../../runtime/certificates.ts';
import type { DiskRoom } from '../../runtime/disk-room.ts';
import { AnswerDeadline, withPromptReads } from '../../runtime/prompt-reads.ts';
import { WriteHealth, withOneStoreAlarm } from '../../runtime/write-health.ts';
import { type MakeBackup, scheduledBackups } from '../server/backups.ts';
import { certificateAlarms } from '../server/certificate-alarms.ts';
import type { OperatorParts } from './operator-deps.ts';
import type { MarketplaceOperators } from './operators.ts';

export interface MarketplaceDeps {
  store: Store;
  clock: Clock;
  random: Random;
  log: Log;
  options: MarketplaceOptions;
  rateLimits: RateLimitOptions;
  /** The providers, in the order of listing. The marketplace closes their clients. */
  providers: readonly ConfiguredProvider[];
  /** Providers that were given up: what is left at them ends. Default: none. */
  retired?: readonly string[] | undefined;
  gpuTypes: GpuTypes;
  /** If null, mails are only stored. */
  mailer: Mailer | null;
  trustedProxies: number;
  /** Origins of web pages that may call the API; default: none. */
  corsOrigins?: readonly string[];
  /** Host names of the operators' API and pages on the admin listener. If undefined, the listener has neither. */
  operatorHosts?: readonly string[] | undefined;
  nextId?: () => string;
  tracing?: Tracing | undefined;
  /** Returns the free space on the database's disk. Absent if the database is on another machine. */
  diskRoom?: (() => Promise<DiskRoom | undefined>) | undefined;
  /** The schedule of copies of the database, and what makes one; default: none. */
  backups?: Backups | undefined;
  makeBackup?: MakeBackup | undefined;
  /** Already known certificates; default: none. */
  certificates?: Certificates;
  /** Who is told about alarms; default: nobody. The marketplace closes them. */
  alarmRoutes?: readonly AlarmRoute[];
}

export interface Marketplace {
  /** The API's app. It answers in process, through `app.request()`. */
  app: ReturnType<typeof createApp>;
  /** The admin listener's app. */
  admin: ReturnType<typeof adminApp>;
  /** The operators' API within `admin`. Undefined if there is none. */
  operator: MarketplaceOperators['apps']['/operator'] | undefined;
  /** The operators' pages within `admin`. Undefined if there are none. */
  console: MarketplaceOperators['apps']['/console'] | undefined;
  /** What the operators' part needs, if it is composed later. */
  operatorParts: OperatorParts;
  listener: RequestListener;
  refuse: ReturnType<typeof refuseWire>;
  /** The dependencies of the use cases. */
  deps: Deps;
  providers: LiveProviders;
  /** The jobs. Tests can run a single round of each. */
  workers: ProviderWorkers;
  billing: BillingJob;
  mail: MailDispatcher;
  alarmWatch: AlarmWatch;
  stockAlerts: ReturnType<typeof createStockAlerts>;
  /** Makes the server not ready. Requests are still answered. */
  beginDrain(): void;
  /** Waits for running work to end. The caller closes the store. */
  close(): Promise<void>;
}

/** Composes a marketplace and starts its work: first the catalogs, then sync, billing and mail. */
export async function startMarketplace(parts: MarketplaceDeps): Promise<Marketplace> {
  const { clock, random, options, mailer } = parts;
  const log = withOneStoreAlarm(parts.log);
  const writes = new WriteHealth({ clock, log: parts.log, prove: () => parts.store.proveWrites() });
  const { transact, countRequest, uncountRequest } = parts.store;
  const counting = writes.of({ countRequest, uncountRequest });
  const store = { ...parts.store, ...writes.of({ transact }), ...counting };
  const { gpuTypes, trustedProxies, tracing, nextId = requestIds(random) } = parts;
  const installationId = await ensureInstallationId({ store, random });
  const providers = createProviders({
    providers: parts.providers,
    gpuTypes,
    store,
    clock,
    log,
  });
  // The catalogs are in the database, so that a new process answers like the others.
  await providers.reread();
  const deps: Deps = {
    store,
    clock,
    random,
    log,
    options,
    providers,
    installationId,
  };
  const { retired = [] } = parts;
  await assertNoneMissing({ ...deps, retired });
  const workers = new ProviderWorkers({ ...deps, refreshCatalog: providers.refresh });
  const billing = new BillingJob({ ...deps, enforce: createEnforcement(deps) });
  const mail = new MailDispatcher({ ...deps, mailer });
  const stockAlerts = createStockAlerts(deps);
  const promptStore = withPromptReads(store);
  const authenticator = new Authenticator({ store: promptStore, clock });
  const deadline = new AnswerDeadline();
  const counts = aroundMethods(counting, (call) => deadline.of(call()));
  const rateLimits = new RateLimits({ store: counts, clock }, parts.rateLimits);
  let isServing = true;
  const findProblem = readiness({
    isServing: () => isServing,
    writes,
    readStore: () => promptStore.read.settings.get('installation_id'),
  });
  const { certificates = new Certificates({ clock, log }), operatorHosts: hosts, alarmRoutes = [] } = parts;
  const alarms = new Alarms<AlarmKind>({ store, clock, log, kinds: alarmKindFacts, server: hostname() });
  const { diskRoom } = parts;
  const watch = new AlarmWatch({ store, clock, log, alarms, providers, workers, diskRoom });
  const notifier = new AlarmNotifier({
    ...{ store, clock, log, alarms, kinds: alarmKindFacts, routes: alarmRoutes },
  });
  const metrics = new Metrics({
    ...deps,
    store: promptStore,
    workers,
    diskRoom,
    alarms,
    writes,
    certificates,
    version: packageVersion(),
  });
  const operatorParts: OperatorParts = {
    ...deps,
    // Some operator views read all rows. They have no time limit while the database answers other reads.
    store: withPromptReads(store, { prove: () => store.read.settings.get('installation_id') }),
    workers,
    providers,
    certificates,
    maxLosses: options.maxLosses,
    metrics,
    trustedProxies,
    nextId,
    alarmRoutes: () => alarmRoutes,
  };
  const forOperators = hosts ? (await import('./operators.ts')).composeOperators(operatorParts) : undefined;
  const backups = scheduledBackups({
    ...{ backups: parts.backups, product: 'marketplace', clock, log, alarms, make: parts.makeBackup },
  });
  const housekeeping = new Housekeeping({
    authenticators: [authenticator, ...(forOperators === undefined ? [] : [forOperators.operators])],
    audit: forOperators && { store, keptMs: options.auditKeptMs },
    also: () => void backups?.poll(),
    figures:
      forOperators &&
      new FigureRecorder({
        store,
        clock,
        log,
        source: figureSource({ store, clock, providers: providers.ids }),
      }),
    clock,
    log,
  });
  const app = createApp(
    {
      ...deps,
      store: promptStore,
      authenticator,
      rateLimits,
      metrics,
      trustedProxies,
      corsOrigins: parts.corsOrigins ?? [],
      tracing,
    },
    { nextId, findProblem },
  );
  const admin = adminApp(
    findProblem,
    metrics,
    forOperators && hosts && { apps: forOperators.apps, hosts, log, trustedProxies },
  );
  if (forOperators !== undefined) admin.get('/', (context) => context.redirect('/console'));
  const standingOrders = createStandingOrders(deps, retired);
  await alarms.sync();
  const jobs = [billing, standingOrders, workers, stockAlerts, mail, housekeeping, notifier, watch];
  providers.start();
  for (const job of jobs) job.start();
  certificates.start(certificateAlarms(alarms));
  return {
    app,
    admin,
    operator: forOperators?.apps['/operator'],
    console: forOperators?.apps['/console'],
    operatorParts,
    deps,
    providers,
    workers,
    billing,
    mail,
    alarmWatch: watch,
    stockAlerts,
    listener: createListener(app, { log, rateLimits, nextId, trustedProxies }),
    refuse: refuseWire(rateLimits),
    beginDrain: () => {
      isServing = false;
    },
    close: async () => {
      // Stops the writers of mails before their sender, the users of workers before the workers, and all callers of
      // providers before the clients close.
      for (const job of jobs) await job.stop();
      authenticator.close();
      await providers.close();
      certificates.stop();
      writes.stop();
    },
  };
}
