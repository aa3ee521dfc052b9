import { randomUUID } from 'node:crypto';
import { Client, type ClientBase, Pool, type PoolConfig, type QueryResult } from 'pg';
import { asFailure } from './errors.ts';

/** How long, in milliseconds, each thing may take until it counts as failed. */
const CONNECT_MS = 5_000;
const LOCK_MS = 8_000;
const STATEMENT_MS = 10_000;
/** Longer than the server's own limit, which gives the better message. */
const ANSWER_MS = 12_000;
/** A process that is paused in a transaction keeps its locks so long. */
export const IDLE_IN_TRANSACTION_MS = 5_000;

/** What every connection of Berth's is made with. */
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

/**
 * Connections of which each keeps what it answers for: a commit is on the disk, and nothing is waited for too long.
 */
export function createPool(url: string, max: number): Pool {
  const pool = new Pool({
    ...connectionOptions(url),
    max,
    Client: BerthClient,
    // The pool awaits it; its type does not say so.
    onConnect: ((client: ClientBase) => prepareSession(client)) as unknown as (client: ClientBase) => void,
  });
  // A connection that breaks while nobody uses it is replaced; without a listener it would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

async function prepareSession(client: ClientBase): Promise<void> {
  client.on('error', () => undefined);
  await client.query(`
    SET synchronous_commit = on;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off;
    SET statement_timeout = ${STATEMENT_MS};
    SET lock_timeout = ${LOCK_MS};
    SET idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`);
}

/** How long, in milliseconds, a server is given to say goodbye. */
const GOODBYE_MS = 2_000;

/** A connection that closes in time also where nobody answers, and that asks for no text which cannot be. */
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
    return Reflect.apply(super.query, this, [query, findable(query, values), ...rest]);
  }
}

/**
 * PostgreSQL holds no text with a NUL and refuses to be asked for one: what is looked for is some text that it does
 * not hold either. What is written stays as it is, and is refused.
 */
function findable(query: unknown, values: unknown): unknown {
  if (!Array.isArray(values) || !values.some(hasNul)) return values;
  const text = typeof query === 'string' ? query : (query as { text?: unknown }).text;
  if (typeof text !== 'string' || !/^\s*select/i.test(text)) return values;
  return values.map((value) => (hasNul(value) ? randomUUID() : value));
}

const hasNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');

/** More than the rows of one create. */
const PROOF_BYTES = 65_536;

/**
 * Takes new pages in the data and in the write-ahead log, and gives them back. Two servers that do so at once wait for
 * each other. EXTERNAL: what is compressed would take no room.
 *
 * @throws {PostgresFailure}
 */
export async function proveWrites(pool: Pool): Promise<void> {
  const client = await asFailure(pool.connect());
  let isBroken = true;
  try {
    await asFailure(
      client.query(
        `BEGIN;
         CREATE TABLE write_proof (filler text);
         ALTER TABLE write_proof ALTER filler SET STORAGE EXTERNAL;
         INSERT INTO write_proof VALUES (repeat('x', ${PROOF_BYTES}));
         DROP TABLE write_proof;
         COMMIT`,
      ),
    );
    isBroken = false;
  } finally {
    client.release(isBroken);
  }
}
