import { type ClientBase, Pool, type PoolConfig } from 'pg';
import { BerthClient } from './client.ts';

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
