import type { RequestListener } from 'node:http';
import type { Config } from '../../config/schema.ts';
import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import type { HttpError } from '../../http/api/errors.ts';
import { appListener } from '../../http/api/listener.ts';
import type { adminApp } from '../../http/api/operations.ts';
import type { ServerOptions } from '../../http/wire/server.ts';
import { envelopeErrors } from '../../operator-kit/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { Certificates } from '../../runtime/certificates.ts';
import { toAddress } from '../../store/postgres/errors.ts';
import { assertNotServed, takeServeLock } from '../../store/sqlite/serve-lock.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { listen, listenAdmin, warnOfPlainHttp } from '../server/listen.ts';
import { openIn, type StoreOptions, type Stores } from '../stores/stores.ts';

/** The shutdown steps of a server, in this order. Each startup step adds its own. */
type Undo = (() => unknown)[];

type Product = Pick<Orchestrator, 'listener' | 'beginDrain' | 'close'> &
  Partial<Pick<ServerOptions, 'refuse'>> & { admin: Pick<ReturnType<typeof adminApp>, 'fetch'> };

interface ServeParts {
  config: Pick<Config, 'server' | 'database'>;
  log: Log;
  /** Default port of /metrics. */
  adminPort: number;
  basePath: string;
  nextId: () => string;
  refuse: ServerOptions['refuse'];
  /** The answer until the product runs. */
  notReady: { error: HttpError; headers?: () => Record<string, string> };
  certificates?: Certificates;
  /** Further fields of the startup log line. */
  facts?: object;
}

export interface Served {
  baseUrl: string;
  /** URL of the admin listener. Null if there is none. */
  adminUrl: string | null;
  /** What is missing and why, if the default port of the admin listener is taken. */
  withoutAdmin: string | undefined;
  /** Drains: accepts no new request, and lets running requests and work end. */
  stop(): Promise<void>;
}

/** Part of drain_s that is reserved for closing the database and the driver. */
const RESERVE_MS = 500;
/** Time for the work to end, even if no time is left after the requests. */
const LEAST_CLOSE_MS = 2_000;
const CUT_OFF =
  'requests or steps of work still run at the end of server.drain_s: they are cut off, and the next start continues the steps';

/** Waits until `over`, a time of `performance.now()`. Returns false if `closing` has not settled by then. */
async function within(over: number, closing: Promise<unknown>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), Math.max(0, over - performance.now()));
  try {
    return await Promise.race([closing.then(() => true), promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Starts a server. It takes the port before `start` writes anything, so that a failed start changes nothing.
 * @throws {Fatal} with a sentence for the operator
 */
export async function serve<P extends Product>(
  { config, log, adminPort, basePath, nextId, notReady, facts, certificates, ...first }: ServeParts,
  start: (undo: Undo) => Promise<P>,
): Promise<Served & { product: P }> {
  let { refuse } = first;
  let listener = answerNotReady(notReady, nextId);
  const wire: Parameters<typeof listen>[1] = { nextId, refuse: (...problem) => refuse(...problem), log };
  const { server, origin } = await listen(
    config,
    { ...wire, certificateSeen: certificates?.of('api', 'api') },
    (request, response) => listener(request, response),
  );
  const baseUrl = `${origin}${basePath}`;
  const undo: Undo = [() => server.close(0)];
  const end = async () => {
    for (const step of undo) await step();
  };
  try {
    const { admin, withoutAdmin } = await listenAdmin(
      config,
      adminPort,
      { ...wire, certificateSeen: certificates?.of('admin', 'admin') },
      listener,
    );
    undo.push(() => admin?.close());
    const product = await start(undo);
    listener = product.listener;
    refuse = product.refuse ?? refuse;
    admin?.serve(adminListener(product.admin, { config, log, nextId }));
    warnOfPlainHttp(log, config);
    log.info(
      { base_url: baseUrl, admin_url: admin?.url, database: describeDatabase(config.database), ...facts },
      'serving',
    );
    return {
      product,
      baseUrl,
      adminUrl: admin?.url ?? null,
      withoutAdmin,
      stop: async () => {
        log.info({}, 'draining');
        const drainMs = config.server.drain_s * 1000;
        const over = performance.now() + Math.max(drainMs, LEAST_CLOSE_MS);
        product.beginDrain();
        const drained = server.close(drainMs).then(() => admin?.close());
        const isClosed = await within(
          over - RESERVE_MS,
          drained.then(() => product.close()),
        );
        if (!isClosed) log.warn({ drain_s: config.server.drain_s }, CUT_OFF);
        await within(over, end());
        log.info({}, 'stopped');
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** The request listener of the admin listener. */
export function adminListener(
  { fetch }: Product['admin'],
  { config, log, nextId }: Pick<ServeParts, 'config' | 'log' | 'nextId'>,
): RequestListener {
  const errors = envelopeErrors({ server: 'server', store: 'database' });
  return appListener(fetch, { errors, log, nextId, trustedProxies: config.server.trusted_proxies });
}

/**
 * Opens the store, and creates it if missing. This process locks a SQLite file. `check` runs before anything is
 * written.
 * @throws {DatabaseRefused}
 */
export async function openToServe<Store extends { close(): Promise<void> }>(
  stores: Stores<Store>,
  database: string,
  undo: Undo,
  { check = () => undefined, ...options }: StoreOptions & { check?: () => void },
): Promise<Store> {
  const { command } = stores.format;
  const file = isPostgres(database) ? undefined : sqlitePath(database);
  const beforeWriting = (): void => {
    if (file !== undefined) assertNotServed(file, command);
    check();
    if (file !== undefined) undo.push(takeServeLock(file, command));
  };
  const store = await openIn(stores, database, { ...options, beforeWriting });
  undo.unshift(() => store.close());
  return store;
}

function answerNotReady({ error, headers }: ServeParts['notReady'], nextId: () => string): RequestListener {
  return (_request, response) => {
    response.writeHead(error.status, {
      'Content-Type': 'application/json',
      'X-Request-Id': nextId(),
      'Retry-After': '1',
      ...headers?.(),
    });
    response.end(JSON.stringify(error.toBody()));
  };
}

/** The database for the log, without a password. */
function describeDatabase(database: string): string {
  return isPostgres(database) ? toAddress(database) : sqlitePath(database);
}
