import type { Connection } from '../queries/connection.ts';
import { ASK_TIME, CommitFeed, defaultTiming, type FeedListener, type OwnCommit } from './commit-feed.ts';
import { lockingConnections } from './connection.ts';
import type { DatabaseFormat } from './database-format.ts';
import { asFailure, fromPostgres, refusalOf } from './errors.ts';
import { type PostgresOptions, prepareDatabase } from './open-database.ts';
import { createPool, TRANSACTIONS } from './pool.ts';
import { OutcomeUnknown, proveWrites, runTransaction } from './transaction.ts';

/** Single statements have their own connections, so that transactions that wait for locks do not block them. */
const TRANSACTIONS_AT_ONCE = 10;
const STATEMENTS_AT_ONCE = 5;

/** What differs between the databases of Berth's programs. */
interface Program<Schema> extends Pick<FeedListener, 'changed' | 'missed'> {
  format: DatabaseFormat;
  tables: Schema;
  /** The effect of missing notifications, for the log. */
  withoutFeed: string;
}

/** A transaction that is about to commit. `notify` is called after the commit. */
interface Written<T> {
  value: T;
  announced: readonly string[];
  notify: () => void;
}

/**
 * Opens one PostgreSQL database that several processes write. Each is notified of the others' commits.
 * @throws {DatabaseRefused} if the database cannot be used as it is.
 */
export async function openSharedDatabase<Schema>(
  url: string,
  { timing = defaultTiming, log, hearTime = async (ask) => void (await ask()), ...options }: PostgresOptions,
  { format, tables, withoutFeed, changed, missed }: Program<Schema>,
) {
  const schema = await prepareDatabase(url, options, format);
  const pool = createPool(url, TRANSACTIONS_AT_ONCE, TRANSACTIONS);
  const statementPool = createPool(url, STATEMENTS_AT_ONCE);
  const inTransaction = lockingConnections(tables);
  const feed = new CommitFeed(
    url,
    {
      changed,
      missed,
      lost: (reason) => log?.warn({ reason }, `notifications of other servers do not arrive: ${withoutFeed}`),
      found: () => log?.info({}, 'notifications of other servers arrive again'),
      send: (text) => statementPool.query(text),
      hearTime,
    },
    timing,
  );
  const close = async (): Promise<void> => {
    await feed.stop();
    await Promise.all([pool.end(), statementPool.end()]);
  };
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
    schema,
    /** For statements outside transactions. */
    statementPool,
    isCommitFeedLive: () => feed.isCurrent(),
    /** Runs `body` in a transaction, and notifies other processes and this one of its changes. */
    transact: async <T>(body: (connection: Connection<Schema>) => Promise<Written<T>>): Promise<T> => {
      let commit: OwnCommit | undefined;
      const ended = () => commit && feed.markDelivered(commit);
      const pools = { pool, schema };
      const { value, notify } = await runTransaction(pools, inTransaction, async (connection) => {
        ended();
        const written = await body(connection);
        commit = feed.announce(written.announced);
        return { result: written, last: commit.notices };
      }).catch((error) => {
        if (error instanceof OutcomeUnknown) feed.doubtOwn();
        else ended();
        throw error;
      });
      notify();
      ended();
      return value;
    },
    proveWrites: async () =>
      proveWrites({ pool, schema }).catch((error) => Promise.reject(fromPostgres(error))),
    close,
  };
}
