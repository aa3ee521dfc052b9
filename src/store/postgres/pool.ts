import { type ClientBase, Pool, type PoolConfig } from 'pg';
import { BerthClient, TransactionClient } from './client.ts';

/** Timeouts, in milliseconds. */
const CONNECT_MS = 5_000;
const LOCK_MS = 8_000;
const STATEMENT_MS = 10_000;
/** This is longer than the server's own limit, so that the server's message, which is better, comes first. */
const ANSWER_MS = 12_000;
/** How long a process that pauses in a transaction keeps its locks. */
const IDLE_IN_TRANSACTION_MS = 5_000;

/** The options of every connection. */
export function connectionOptions(url: string): PoolConfig {
  return {
    connectionString: url,
    application_name: 'berth',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** The settings of a pool. */
interface Use {
  /** Time limit of a statement on the server, in milliseconds; 0: none. */
  statementMs: number;
  /** Time limit for its answer. */
  answerMs: number;
  /** Whether a statement outside a transaction may write. */
  mayWriteAlone: boolean;
  Client: typeof BerthClient;
}

/** For statements that are each a transaction of their own. */
const STATEMENTS: Use = {
  statementMs: STATEMENT_MS,
  answerMs: ANSWER_MS,
  mayWriteAlone: true,
  Client: BerthClient,
};

/**
 * Statements are sent before BEGIN is answered. If BEGIN is refused, each runs as its own transaction, which the server
 * then keeps read-only.
 */
export const TRANSACTIONS: Use = { ...STATEMENTS, mayWriteAlone: false, Client: TransactionClient };

/** For audits. They have no time limits, because a statement that reads everything takes longer with more data. */
export const AUDITS: Use = { statementMs: 0, answerMs: 0, mayWriteAlone: false, Client: BerthClient };

/** Creates a pool of connections to a server that is not a standby. Their commits wait until they are on disk. */
export function createPool(url: string, max: number, use = STATEMENTS): Pool {
  const pool = new Pool({
    ...connectionOptions(url),
    query_timeout: use.answerMs,
    pipeline: true,
    max,
    Client: use.Client,
    // The pool awaits it, though its type does not say so.
    onConnect: ((client: ClientBase) => prepareSession(client, use)) as unknown as (
      client: ClientBase,
    ) => void,
  });
  // A broken idle connection is replaced. Without a listener the error would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** A standby refuses the last statement. Its answers may be outdated, and its connection would stay in the pool. */
async function prepareSession(client: ClientBase, { statementMs, mayWriteAlone }: Use): Promise<void> {
  client.on('error', () => undefined);
  await client.query(`
    SET synchronous_commit = on;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = ${mayWriteAlone ? 'off' : 'on'};
    SET statement_timeout = ${statementMs};
    SET lock_timeout = ${LOCK_MS};
    SET idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`);
  await client.query('SELECT pg_current_xact_id()');
}
