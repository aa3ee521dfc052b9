import { drizzle } from 'drizzle-orm/node-postgres';
import { Duplicate, type Store } from '../../../marketplace/model/store.ts';
import type { Log } from '../../../ports/log.ts';
import {
  ASK_TIME,
  CommitFeed,
  defaultTiming,
  type FeedTiming,
  type OwnCommit,
} from '../../postgres/commit-feed.ts';
import { lockingConnections, readingConnections, toConnection } from '../../postgres/connection.ts';
import { marketplaceFormat } from '../../postgres/database-format.ts';
import { asFailure, fromPostgres, PostgresFailure, refusalOf } from '../../postgres/errors.ts';
import { type OpenOptions, prepareDatabase } from '../../postgres/open-database.ts';
import { AUDITS, createPool, TRANSACTIONS } from '../../postgres/pool.ts';
import { OutcomeUnknown, proveWrites, runSnapshot, runTransaction } from '../../postgres/transaction.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { postgres } from '../../schema/postgres.ts';
import { readerOn, transactionOn } from '../queries/repositories.ts';
import { type Notifications, noNotifications, RowSignals, toTexts } from '../row-signals.ts';
import { SharedRequestCounts } from './request-counts.ts';

/** Other statements have separate connections, so that transactions that wait for locks do not block them. */
const TRANSACTIONS_AT_ONCE = 10;
const STATEMENTS_AT_ONCE = 5;
const AUDITS_AT_ONCE = 2;

const tables = marketplaceTables(postgres);

export interface MarketplacePostgresOptions extends OpenOptions {
  timing?: FeedTiming;
  /** Logs when commits of other servers are no longer received, and when they are again. */
  log?: Pick<Log, 'info' | 'warn'>;
  /** Reads the database's time, once before the store opens and then at each heartbeat. See `CommitFeed`. */
  hearTime?: (ask: () => Promise<number>) => Promise<void>;
}

/**
 * Opens the marketplace's store for several replicas: one PostgreSQL database that several processes write.
 * @throws {DatabaseRefused} if the database cannot be used as it is.
 */
export async function openMarketplacePostgresStore(
  url: string,
  {
    hearTime = async (ask) => void (await ask()),
    timing = defaultTiming,
    log,
    ...options
  }: MarketplacePostgresOptions = {},
): Promise<Store> {
  const schema = await prepareDatabase(url, options, marketplaceFormat);
  const pool = createPool(url, TRANSACTIONS_AT_ONCE, TRANSACTIONS);
  const statementPool = createPool(url, STATEMENTS_AT_ONCE);
  const auditPool = createPool(url, AUDITS_AT_ONCE, AUDITS);
  const hear = () =>
    asFailure(
      hearTime(async () => (await statementPool.query<{ now: number }>(ASK_TIME)).rows[0]?.now ?? Number.NaN),
    );
  const signals = new RowSignals();
  const feed = new CommitFeed(
    url,
    {
      changed: async (texts) => signals.receive(texts),
      missed: () => signals.missed(),
      lost: (reason) =>
        log?.warn(
          { reason },
          'notifications of other servers do not arrive: requests wait a few seconds longer',
        ),
      found: () => log?.info({}, 'notifications of other servers arrive again'),
      send: (text) => statementPool.query(text),
      hearTime,
    },
    timing,
  );
  const end = async () => {
    await feed.stop();
    await Promise.all([pool.end(), statementPool.end(), auditPool.end()]);
  };
  let ending: Promise<void> | undefined;
  const close = () => (ending ??= end());
  try {
    await hear();
  } catch (error) {
    await close();
    throw refusalOf(error, url);
  }
  feed.start();
  const requests = new SharedRequestCounts(drizzle(statementPool));
  const inTransaction = lockingConnections(tables);
  const inSnapshot = readingConnections(tables);

  return {
    read: readerOn(toConnection(statementPool, tables), toCoreError),
    transact: async (body) => {
      let commit: OwnCommit | undefined;
      const ended = () => commit && feed.markDelivered(commit);
      const { value, notifications } = await guarded(
        runTransaction({ pool, statementPool, schema }, inTransaction, async (connection) => {
          ended();
          const notifications: Notifications = noNotifications();
          const value = await body(transactionOn(connection, notifications));
          commit = feed.announce(toTexts(notifications));
          return { result: { value, notifications }, last: commit.notices };
        }),
      ).catch((error) => {
        if (error instanceof OutcomeUnknown) feed.doubtOwn();
        else ended();
        throw error;
      });
      signals.notify(notifications);
      ended();
      return value;
    },
    watch: signals.watch,
    onWake: signals.onWake,
    // If one transaction changes all rows of a page, their new versions go to other pages and into each index.
    confirmationsAtOnce: 200,
    snapshot: (body) =>
      guarded(runSnapshot(auditPool, inSnapshot, (connection) => body(readerOn(connection, toCoreError)))),
    countRequest: (window) => guarded(requests.count(window)),
    proveWrites: () => guarded(proveWrites({ pool, schema })),
    close,
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
