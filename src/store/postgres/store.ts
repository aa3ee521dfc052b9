import { sql } from 'drizzle-orm';
import type { CommitListener, Store } from '../../orchestrator/model/store.ts';
import type { Log } from '../../ports/log.ts';
import { writeHistory } from '../queries/history.ts';
import { instancesByIds } from '../queries/instances.ts';
import { Changes, notifyListeners, readerOn, transactionOn } from '../queries/repositories.ts';
import { claimWork, nextWorkAt } from '../queries/work.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { postgres } from '../schema/postgres.ts';
import { ASK_TIME, CommitFeed, defaultTiming, type FeedTiming, type OwnCommit } from './commit-feed.ts';
import { lockingConnections, skippingLocked, toConnection } from './connection.ts';
import { asFailure, fromPostgres, refusalOf } from './errors.ts';
import { type OpenOptions, prepareDatabase } from './open-database.ts';
import { createPool, TRANSACTIONS } from './pool.ts';
import { OutcomeUnknown, proveWrites, runTransaction } from './transaction.ts';

/** Other statements have separate connections, so that transactions that wait for locks do not block them. */
const TRANSACTIONS_AT_ONCE = 10;
const STATEMENTS_AT_ONCE = 5;

const tables = orchestratorTables(postgres);

export interface PostgresOptions extends OpenOptions {
  timing?: FeedTiming;
  /** Logs when commits of other servers are no longer received, and when they are again. */
  log?: Pick<Log, 'info' | 'warn'>;
  /** Reads the database's time, once before the store opens and then at each heartbeat. See `CommitFeed`. */
  hearTime?: (ask: () => Promise<number>) => Promise<void>;
}

/**
 * Opens the store for several replicas: one PostgreSQL database that several processes write. Each is notified of the
 * others' commits.
 * @throws {DatabaseRefused} if the database cannot be used as it is.
 */
export async function openPostgresStore(
  url: string,
  {
    timing = defaultTiming,
    log,
    hearTime = async (ask) => void (await ask()),
    ...options
  }: PostgresOptions = {},
): Promise<Store> {
  const schema = await prepareDatabase(url, options);
  const pool = createPool(url, TRANSACTIONS_AT_ONCE, TRANSACTIONS);
  const statementPool = createPool(url, STATEMENTS_AT_ONCE);
  const outside = toConnection(statementPool, tables);
  const claiming = {
    ...toConnection(statementPool, tables, skippingLocked),
    onlyIf: sql.raw(`(SELECT version FROM ${schema.versionTable} LIMIT 1) = ${schema.version}`),
  };
  const inTransaction = lockingConnections(tables);
  const listeners = new Set<CommitListener>();
  const feed = new CommitFeed(
    url,
    {
      changed: async (ids, volumesOf) => {
        const records = ids.length === 0 ? [] : await instancesByIds(outside, ids);
        notifyListeners(listeners, records, { volumesOf });
      },
      missed: () => {
        for (const listener of listeners) listener.commitsMissed?.();
      },
      lost: (reason) =>
        log?.warn({ reason }, 'notifications of other servers do not arrive: reads query the database'),
      found: () => log?.info({}, 'notifications of other servers arrive again'),
      send: (text) => statementPool.query(text),
      hearTime,
    },
    timing,
  );
  const end = async () => {
    await feed.stop();
    await Promise.all([pool.end(), statementPool.end()]);
  };
  let ending: Promise<void> | undefined;
  const close = () => (ending ??= end());
  try {
    await asFailure(
      hearTime(async () => (await statementPool.query<{ now: number }>(ASK_TIME)).rows[0]?.now ?? Number.NaN),
    );
  } catch (error) {
    await close();
    throw refusalOf(error, url);
  }
  feed.start();

  return {
    isShared: true,
    isCommitFeedLive: () => feed.isCurrent(),
    read: readerOn(outside, fromPostgres),
    transact: async (body) => {
      let commit: OwnCommit | undefined;
      const ended = () => commit && feed.markDelivered(commit);
      const { value, changes } = await runTransaction(
        { pool, statementPool, schema },
        inTransaction,
        async (connection) => {
          ended();
          const changes = new Changes();
          const value = await body(transactionOn(connection, changes));
          await writeHistory(connection, changes.history);
          commit = feed.announce([...changes.instances.keys()], [...changes.volumesOf]);
          return { result: { value, changes }, last: commit.notices };
        },
      ).catch((error) => {
        if (error instanceof OutcomeUnknown) feed.doubtOwn();
        else ended();
        throw error;
      });
      notifyListeners(listeners, changes.instances.values(), changes);
      ended();
      return value;
    },
    claimWork: (claim) => guarded(claimWork(claiming, claim)),
    nextWorkAt: (platform) => guarded(nextWorkAt(outside, platform)),
    endAbandonedLeases: async () => undefined,
    proveWrites: () => guarded(proveWrites({ pool, schema })),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close,
  };
}

async function guarded<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((error) => Promise.reject(fromPostgres(error)));
}
