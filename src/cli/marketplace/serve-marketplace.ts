import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { loadMarketplaceConfig, type MarketplaceFlags } from '../../config/marketplace/load.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { ApiError } from '../../marketplace/contract/errors.ts';
import { refuseWire } from '../../marketplace/http/errors.ts';
import { type RateLimits, rateLimitHeaders } from '../../marketplace/http/rate-limits.ts';
import type { Clock } from '../../ports/clock.ts';
import { createSharedClock, createSystemClock, systemRandom } from '../../runtime/system.ts';
import { assertNotServed, takeServeLock } from '../../store/sqlite/serve-lock.ts';
import { Fatal } from '../fatal.ts';
import { listen, listenAdmin } from '../listen.ts';
import { createLog } from '../log.ts';
import { describeDatabase } from '../open-store.ts';
import type { Stoppable } from '../stop-on-signal.ts';
import { tellClock, warnOfJump, warnOfPlainHttp } from '../warnings.ts';
import { loadGpuTypes } from './connect-providers.ts';
import { createClients } from './create-clients.ts';
import { createMailer } from './create-mailer.ts';
import { toMarketplaceOptions, toRateLimits } from './marketplace-options.ts';
import { openMarketplaceStore } from './open-marketplace-store.ts';
import { type MarketplaceDeps, startMarketplace } from './start-marketplace.ts';

/** Where /metrics is, unless the configuration says otherwise. */
const ADMIN_PORT = 9081;

export interface ServeMarketplaceOptions {
  configFile?: string | undefined;
  flags: MarketplaceFlags;
  env: Readonly<Record<string, string | undefined>>;
}

export interface ServingMarketplace extends Stoppable {
  baseUrl: string;
  /** Where /metrics is; null: nowhere. */
  adminUrl: string | null;
  providers: readonly string[];
  /** Whether /docs is served. */
  hasDocs: boolean;
}

/**
 * Starts `berth marketplace`. The port is taken before anything is written, so a start that fails changes nothing.
 *
 * @throws {Fatal | ConfigError | DatabaseRefused} with a sentence for the operator
 */
export async function serveMarketplace({
  configFile,
  flags,
  env,
}: ServeMarketplaceOptions): Promise<ServingMarketplace> {
  const config = loadMarketplaceConfig({ file: configFile, flags, env });
  if (config.providers.length === 0)
    throw new Fatal(
      'The marketplace has no provider: name one under `providers` in marketplace.yaml and give it with --config; marketplace.example.yaml shows how.',
    );
  const log = createLog(config.log.level);
  const shared = isPostgres(config.database) ? createSharedClock(tellClock(log)) : undefined;
  const clock = shared ?? createSystemClock({ onJump: (byMs) => warnOfJump(log, byMs) });
  const parts = { env, clock, log };
  const providers = createClients(config, parts);
  const mailer = createMailer(config, parts);
  const gpuTypes = loadGpuTypes();
  const nextId = requestIds(systemRandom);
  const unopened = unopenedLimits(config, clock);
  let refuse = refuseWire(unopened);
  let listener = answerNotReady(nextId, unopened);
  const wire: Parameters<typeof listen>[1] = { nextId, refuse: (...problem) => refuse(...problem), log };
  const { server, origin } = await listen(config, wire, (request, response) => listener(request, response));
  const undo: (() => unknown)[] = [() => server.close(0), () => mailer?.close()];
  try {
    const admin = await listenAdmin(config, ADMIN_PORT, wire, listener);
    undo.push(() => admin?.close());
    const store = await openMarketplaceStore(
      config.database,
      () => {
        if (isPostgres(config.database)) return;
        assertNotServed(sqlitePath(config.database), 'berth marketplace');
        undo.push(takeServeLock(sqlitePath(config.database), 'berth marketplace'));
      },
      shared && { hearTime: shared.hear },
    );
    undo.unshift(() => store.close());
    // Who held a lease in a file that is ours alone is dead.
    if (!isPostgres(config.database)) await store.transact((tx) => tx.leases.releaseAll());
    const marketplace = await startMarketplace({
      store,
      clock,
      random: systemRandom,
      log,
      providers,
      mailer,
      gpuTypes,
      nextId,
      ...settingsOf(config),
    });
    ({ refuse, listener } = marketplace);
    admin?.serve(getRequestListener(marketplace.admin.fetch));
    warnOfPlainHttp(log, config);
    log.info(
      { base_url: origin, admin_url: admin?.url, database: describeDatabase(config.database) },
      'serving',
    );
    return {
      baseUrl: origin,
      adminUrl: admin?.url ?? null,
      providers: marketplace.providers.ids(),
      hasDocs: config.server.docs,
      stop: async () => {
        log.info({}, 'draining');
        marketplace.beginDrain();
        await server.close(config.limits.drain_s * 1000);
        await admin?.close();
        await marketplace.close();
        for (const step of undo) await step();
        log.info({}, 'stopped');
      },
    };
  } catch (error) {
    for (const step of undo) await step();
    for (const { client } of providers) await client.close();
    throw error;
  }
}

function settingsOf(
  config: MarketplaceConfig,
): Pick<MarketplaceDeps, 'options' | 'rateLimits' | 'maxBodyBytes' | 'trustedProxies' | 'hasDocs'> {
  return {
    options: toMarketplaceOptions(config),
    rateLimits: toRateLimits(config),
    maxBodyBytes: config.limits.max_body_bytes,
    trustedProxies: config.server.trusted_proxies,
    hasDocs: config.server.docs,
  };
}

/** Nothing is counted before the database is open. */
function unopenedLimits(config: MarketplaceConfig, clock: Clock): Pick<RateLimits, 'peek'> {
  const { otherRequests: limit, windowMs } = toRateLimits(config);
  return { peek: () => ({ limit, remaining: limit, endsAt: clock.now() + windowMs }) };
}

function answerNotReady(nextId: () => string, limits: Pick<RateLimits, 'peek'>): RequestListener {
  return (_request, response) => {
    const error = new ApiError('UNAVAILABLE', 'The marketplace is starting; try again.');
    response.writeHead(error.status, {
      'Content-Type': 'application/json',
      'X-Request-Id': nextId(),
      'Retry-After': '1',
      ...rateLimitHeaders(limits.peek('other', '')),
    });
    response.end(JSON.stringify(error.toBody()));
  };
}
