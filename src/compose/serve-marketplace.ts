import type { RequestListener } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { MarketplaceConfig } from '../config/marketplace/schema.ts';
import { isPostgres, sqlitePath } from '../config/server-schema.ts';
import type { Environment } from '../config/settings.ts';
import { requestIds } from '../http/api/request-context.ts';
import { ApiError } from '../marketplace/contract/errors.ts';
import { refuseWire } from '../marketplace/http/errors.ts';
import { type RateLimits, rateLimitHeaders } from '../marketplace/http/rate-limits.ts';
import { type Mailer, SmtpMailer } from '../marketplace/mail/mailer.ts';
import type { Clock } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';
import type { Log } from '../ports/log.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/system.ts';
import { assertNotServed, takeServeLock } from '../store/sqlite/serve-lock.ts';
import { createServerClock } from './clock.ts';
import { listen, listenAdmin, warnOfPlainHttp } from './listen.ts';
import { type MarketplaceDeps, startMarketplace } from './marketplace.ts';
import { openMarketplaceStore } from './open-marketplace-store.ts';
import { describeDatabase } from './open-store.ts';
import { toMarketplaceOptions, toRateLimits } from './options.ts';
import { createClients, loadGpuTypes, readSecretSource } from './providers.ts';

/** Where /metrics is, unless the configuration says otherwise. */
const ADMIN_PORT = 9081;

/** What `berth marketplace` runs with. */
export interface ServeMarketplaceOptions {
  config: MarketplaceConfig;
  env: Environment;
}

export interface ServingMarketplace {
  baseUrl: string;
  /** Where /metrics is; null: nowhere. */
  adminUrl: string | null;
  providers: readonly string[];
  /** Whether /docs is served. */
  hasDocs: boolean;
  /** Drains: takes no new request, lets the running ones and the running jobs end. */
  stop(): Promise<void>;
}

/**
 * Serves the marketplace. The port is taken before anything is written, so a start that fails changes nothing.
 *
 * @throws {Fatal} with a sentence for the operator
 */
export async function serveMarketplace({
  config,
  env,
}: ServeMarketplaceOptions): Promise<ServingMarketplace> {
  if (config.providers.length === 0)
    throw new Fatal(
      'The marketplace has no provider: name one under `providers` in marketplace.yaml and give it with --config; marketplace.example.yaml shows how.',
    );
  const log = createLog(config.log.level);
  const { clock, hearTime } = createServerClock(config.database, log);
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
      { log, ...(hearTime && { hearTime }) },
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

/** Hands mails to the SMTP server of the configuration. Without one there is none, which the start says. */
function createMailer(
  { mail }: MarketplaceConfig,
  { env, log }: { env: Environment; log: Log },
): Mailer | null {
  if (mail === undefined) {
    log.warn(
      {},
      'no mail server is configured: mails are written down, and not sent; name an SMTP server under `mail`',
    );
    return null;
  }
  const { host, port, secure, user, password_env, password_file, from } = mail.smtp;
  const server = { host, port, secure, from };
  if (user === undefined) return new SmtpMailer(server);
  const source = { env: password_env, file: password_file };
  const password = readSecretSource(source, env, `the password of ${user} at ${host}`);
  return new SmtpMailer({ ...server, user, password });
}
