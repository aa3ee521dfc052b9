import { dirname } from 'node:path';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { packageVersion } from '../../config/package-root.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { Environment } from '../../config/settings.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { ApiError } from '../../marketplace/contract/errors.ts';
import { refuseWire } from '../../marketplace/http/errors.ts';
import { type RateLimits, rateLimitHeaders } from '../../marketplace/http/rate-limits.ts';
import type { Mailer } from '../../marketplace/mail/mailer.ts';
import { defaultRateLimits, noRateLimits, type RateLimitOptions } from '../../marketplace/model/options.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import { Certificates } from '../../runtime/certificates.ts';
import { diskRoomOf } from '../../runtime/disk-room.ts';
import { createLog } from '../../runtime/log.ts';
import { systemRandom } from '../../runtime/system.ts';
import { openTracing } from '../../runtime/tracing/open-tracing.ts';
import { type MarketplaceDeps, startMarketplace } from '../marketplace/marketplace.ts';
import { toMarketplaceOptions } from '../marketplace/options.ts';
import { createClients, loadGpuTypes } from '../marketplace/providers.ts';
import { createAlarmRoutes, createSmtpMailer } from '../server/alarm-routes.ts';
import type { MakeBackup } from '../server/backups.ts';
import { createServerClock } from '../server/clock.ts';
import { marketplaceStores } from '../stores/marketplace.ts';
import { auditServer } from './audit-server.ts';
import { openToServe, type Served, serve } from './serve.ts';

const ADMIN_PORT = 9081;

export interface ServeMarketplaceOptions {
  config: MarketplaceConfig;
  env: Environment;
  /** Copies the database, where `backups` of the configuration asks for it. */
  makeBackup?: MakeBackup;
}

export interface ServingMarketplace extends Served {
  providers: readonly string[];
}

/** Serves the marketplace. @throws {Fatal} with a sentence for the operator */
export async function serveMarketplace({
  config,
  env,
  makeBackup,
}: ServeMarketplaceOptions): Promise<ServingMarketplace> {
  if (config.providers.length === 0)
    throw new Fatal(
      'The marketplace has no provider: name one under `providers` in marketplace.yaml and give it with --config; examples/marketplace.yaml shows how.',
    );
  const log = createLog(config.log_level);
  const { clock, storeOptions } = createServerClock(config.database, log);
  const certificates = new Certificates({ clock, log });
  const parts = { env, clock, log, certificates };
  const providers = createClients(config, parts);
  const mailer = createMailer(config, parts);
  const gpuTypes = loadGpuTypes();
  const nextId = requestIds(systemRandom);
  const unopened = unopenedLimits(config, clock);
  const { product, ...served } = await serve(
    {
      config,
      log,
      adminPort: ADMIN_PORT,
      certificates,
      basePath: '',
      nextId,
      refuse: refuseWire(unopened),
      notReady: {
        error: new ApiError('UNAVAILABLE', 'The marketplace is starting; try again.'),
        headers: () => rateLimitHeaders(unopened.peek('other', '')),
      },
    },
    async (undo) => {
      undo.push(() => mailer?.close());
      const store = await openToServe(marketplaceStores, config.database, undo, { log, ...storeOptions });
      // Only this process uses the file, so the holders of its leases have ended.
      if (!isPostgres(config.database)) await store.transact((tx) => tx.leases.releaseAll());
      const tracing = await openTracing(env, {
        service: 'berth-marketplace',
        version: packageVersion(),
        log,
      });
      undo.unshift(() => tracing?.close());
      const { host, hosts } = config.server.admin;
      const started = await startMarketplace({
        tracing,
        certificates,
        store,
        clock,
        random: systemRandom,
        log,
        providers,
        retired: config.providers.filter(({ retired }) => retired).map(({ id }) => id),
        mailer,
        gpuTypes,
        operatorHosts: [host, ...hosts],
        nextId,
        backups: config.backups,
        makeBackup,
        alarmRoutes: createAlarmRoutes(config, env, clock),
        diskRoom: isPostgres(config.database)
          ? undefined
          : () => diskRoomOf(dirname(sqlitePath(config.database))),
        ...settingsOf(config),
      });
      await auditServer({ store, clock, log }, 'server.start');
      undo.unshift(() => auditServer({ store, clock, log }, 'server.stop'));
      return started;
    },
  ).catch(async (error) => {
    for (const { client } of providers) await client.close();
    throw error;
  });
  return { ...served, providers: product.providers.ids() };
}

function settingsOf(
  config: MarketplaceConfig,
): Pick<MarketplaceDeps, 'options' | 'rateLimits' | 'trustedProxies' | 'corsOrigins'> {
  return {
    options: toMarketplaceOptions(config),
    rateLimits: rateLimitsOf(config),
    trustedProxies: config.server.trusted_proxies,
    corsOrigins: config.cors_origins,
  };
}

const rateLimitsOf = ({ rate_limits: areOn }: MarketplaceConfig): RateLimitOptions =>
  areOn ? defaultRateLimits : noRateLimits;

/** Rate limits for the time before the database is open: no request is counted. */
function unopenedLimits(config: MarketplaceConfig, clock: Clock): Pick<RateLimits, 'peek'> {
  const { otherRequests: limit, windowMs } = rateLimitsOf(config);
  return { peek: () => ({ limit, remaining: limit, endsAt: clock.now() + windowMs }) };
}

/** Creates the mailer for the configured SMTP server. Without one it returns null and logs that. */
function createMailer(
  { mail }: MarketplaceConfig,
  { env, log }: { env: Environment; log: Log },
): Mailer | null {
  if (mail === undefined) {
    log.warn(
      {},
      'no mail server is configured: mails are stored but not sent; set an SMTP server under `mail`',
    );
    return null;
  }
  return createSmtpMailer(mail, env);
}
