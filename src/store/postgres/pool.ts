import { randomUUID } from 'node:crypto';
import { Client, type ClientBase, Pool, type PoolConfig, type QueryResult } from 'pg';

/** Timeouts, in milliseconds. */
const CONNECT_MS = 5_000;
const LOCK_MS = 8_000;
const STATEMENT_MS = 10_000;
/** Longer than the server's own limit, whose message is better. */
const ANSWER_MS = 12_000;
/** How long a process that is paused in a transaction keeps its locks. */
export const IDLE_IN_TRANSACTION_MS = 5_000;

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

/** What the connections of a pool are for. */
interface Use {
  /** How long a statement may take on the server, in milliseconds; 0: as long as it takes. */
  statementMs: number;
  /** How long until its answer is here. */
  answerMs: number;
  /** Whether a statement outside of a transaction may write. */
  mayWriteAlone: boolean;
}

/** For statements that are a transaction each. */
const STATEMENTS: Use = { statementMs: STATEMENT_MS, answerMs: ANSWER_MS, mayWriteAlone: true };

/**
 * Statements are sent before BEGIN is answered. Where that is refused, each is a transaction of its own, which the server
 * then lets read only.
 */
export const TRANSACTIONS: Use = { ...STATEMENTS, mayWriteAlone: false };

/** A statement that reads all that there is takes longer the more there is. */
export const AUDITS: Use = { statementMs: 0, answerMs: 0, mayWriteAlone: false };

/** A pool of connections to a server that is no standby. They wait for a commit to be on disk. */
export function createPool(url: string, max: number, use = STATEMENTS): Pool {
  const pool = new Pool({
    ...connectionOptions(url),
    query_timeout: use.answerMs,
    pipeline: true,
    max,
    Client: BerthClient,
    // The pool awaits it, though its type does not say so.
    onConnect: ((client: ClientBase) => prepareSession(client, use)) as unknown as (
      client: ClientBase,
    ) => void,
  });
  // An idle connection that breaks is replaced. Without a listener the error would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** A standby refuses the last statement: what it answers may be old, and it would stay in the pool. */
async function prepareSession(client: ClientBase, { statementMs, mayWriteAlone }: Use): Promise<void> {
  client.on('error', () => undefined);
  await client.query(`
    SET synchronous_commit = on;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = ${mayWriteAlone ? 'off' : 'on'};
    SET statement_timeout = ${statementMs};
    SET lock_timeout = ${LOCK_MS};
    SET idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};
    SELECT pg_current_xact_id()`);
}

/** How long, in milliseconds, closing a connection may take. */
const GOODBYE_MS = 2_000;

/**
 * A client that closes in time even if the server does not answer, that can search for text with a NUL, and that sends
 * what is asked of it at once in one packet: each packet wakes the server.
 */
export class BerthClient extends Client {
  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const limit = setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS);
    limit.unref();
    this.once('end', () => clearTimeout(limit));
    return callback === undefined ? super.end() : super.end(callback);
  }

  override query(text: string): Promise<QueryResult>;
  override query(...args: never[]): never;
  override query(...args: unknown[]): unknown {
    const [query, values, ...rest] = args;
    const { stream } = this.connection;
    stream.cork();
    process.nextTick(() => stream.uncork());
    return Reflect.apply(super.query, this, [query, findable(query, values), ...rest]);
  }
}

/**
 * PostgreSQL stores no text with a NUL and refuses it as a parameter. A SELECT gets a random text instead, which finds
 * nothing either. A write is left as it is, and refused.
 */
function findable(query: unknown, values: unknown): unknown {
  if (!Array.isArray(values) || !values.some(hasNul)) return values;
  const text = typeof query === 'string' ? query : (query as { text?: unknown }).text;
  if (typeof text !== 'string' || !/^\s*select/i.test(text)) return values;
  return values.map((value) => (hasNul(value) ? randomUUID() : value));
}

const hasNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');
