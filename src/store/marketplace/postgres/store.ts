import { drizzle } from 'drizzle-orm/node-postgres';
import { Duplicate, type Store } from '../../../marketplace/model/store.ts';
import { readingConnections, toConnection } from '../../postgres/connection.ts';
import { marketplaceFormat } from '../../postgres/database-format.ts';
import { fromPostgres, PostgresFailure } from '../../postgres/errors.ts';
import type { PostgresOptions } from '../../postgres/open-database.ts';
import { AUDITS, createPool } from '../../postgres/pool.ts';
import { openSharedDatabase } from '../../postgres/shared-database.ts';
import { runSnapshot } from '../../postgres/transaction.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { postgres } from '../../schema/postgres.ts';
import { readerOn, transactionOn } from '../queries/repositories.ts';
import { noNotifications, RowSignals, toTexts } from '../row-signals.ts';
import { SharedRequestCounts } from './request-counts.ts';

const AUDITS_AT_ONCE = 2;

const tables = marketplaceTables(postgres);

/**
 * Opens the marketplace's store for several replicas: see `openSharedDatabase`.
 * @throws {DatabaseRefused} if the database cannot be used as it is.
 */
export async function openMarketplacePostgresStore(
  url: string,
  options: PostgresOptions = {},
): Promise<Store> {
  const signals = new RowSignals();
  const database = await openSharedDatabase(url, options, {
    format: marketplaceFormat,
    tables,
    withoutFeed: 'requests wait a few seconds longer',
    changed: async (texts) => signals.receive(texts),
    missed: () => signals.missed(),
  });
  const auditPool = createPool(url, AUDITS_AT_ONCE, AUDITS);
  const { statementPool } = database;
  const requests = new SharedRequestCounts(drizzle(statementPool));
  const end = async (): Promise<void> => {
    await Promise.all([database.close(), auditPool.end()]);
  };
  let closing: Promise<void> | undefined;
  const inSnapshot = readingConnections(tables);

  return {
    read: readerOn(toConnection(statementPool, tables), toCoreError),
    transact: (body) =>
      guarded(
        database.transact(async (connection) => {
          const notifications = noNotifications();
          const value = await body(transactionOn(connection, notifications));
          const notify = () => signals.notify(notifications);
          return { value, announced: toTexts(notifications), notify };
        }),
      ),
    watch: signals.watch,
    onWake: signals.onWake,
    // A larger transaction may change all rows of a page. Their new versions then need other pages and new entries in
    // each index. With 16,000 deployments, a row adds 0.3 KB to the log in batches of 200, 1.3 KB in batches of 1,000.
    confirmationsAtOnce: 200,
    snapshot: (body) =>
      guarded(runSnapshot(auditPool, inSnapshot, (connection) => body(readerOn(connection, toCoreError)))),
    countRequest: (window) => guarded(requests.count(window)),
    uncountRequest: (window) => guarded(requests.uncount(window)),
    proveWrites: database.proveWrites,
    close: () => (closing ??= end()),
  };
}

async function guarded<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) => Promise.reject(toCoreError(error)));
}

function toCoreError(error: unknown): unknown {
  const known = fromPostgres(error);
  if (!(known instanceof PostgresFailure) || !known.isDuplicate) return known;
  return new Duplicate(known.message, { cause: known });
}
