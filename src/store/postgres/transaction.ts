import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { StoreUnavailable } from '../../ports/errors.ts';
import { SchemaChanged } from '../database-refused.ts';
import type { Connection } from '../queries/connection.ts';
import type { TransactionClient } from './client.ts';
import type { ClientConnection, ConnectionOf } from './connection.ts';
import type { KnownSchema } from './database-format.ts';
import { asFailure, fromPostgres, toFailure } from './errors.ts';

const MAX_TRIES = 6;
/** A retry sees the conflicting row. If it still conflicts, the caller gets the error. */
const MAX_TRIES_OF_DUPLICATE = 3;
/** Pause before a retry, in milliseconds. It grows with each. */
const PAUSE_MS = [5, 40] as const;

/** These rows are more than any transaction writes: about 1.5 MiB. */
const PROOF_ROWS = 40_000;

/** Both are prepared; otherwise the server would parse and plan them each time. */
const BEGIN: QueryConfig = { name: 'berth_begin', text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' };
const COMMIT: QueryConfig = { name: 'berth_end', text: 'COMMIT' };

export interface Pools {
  /** For `TRANSACTIONS`. */
  pool: Pool;
  /** The schema that transactions require. */
  schema: KnownSchema;
}

export interface Outcome<T> {
  result: T;
  /** Statements that are sent right before the commit, in its packet. */
  last?: readonly QueryConfig[];
}

/** The answer to the commit was lost. It may have happened, or may still happen. */
export class OutcomeUnknown extends StoreUnavailable {}

/**
 * Runs `body` in a transaction. Retries if a concurrent one won.
 * @throws {OutcomeUnknown} if the answer to the commit was lost
 * @throws {StoreUnavailable} if the database does not answer, or has tables of another version; nothing has happened
 * @throws {PostgresFailure} for a violated constraint
 */
export async function runTransaction<T, Schema>(
  pools: Pools,
  connectionOf: ConnectionOf<Schema>,
  body: (connection: Connection<Schema>) => Promise<Outcome<T>>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(pools, connectionOf, body);
    } catch (error) {
      const failure = toFailure(error);
      const tryAtMost = failure?.isDuplicate ? MAX_TRIES_OF_DUPLICATE : MAX_TRIES;
      if (!failure?.isLostRace || tries >= tryAtMost) throw fromPostgres(error);
      await pause(randomInt(...PAUSE_MS) * tries);
    }
  }
}

async function runOnce<T, Schema>(
  { pool, schema }: Pools,
  connectionOf: ConnectionOf<Schema>,
  body: (connection: Connection<Schema>) => Promise<Outcome<T>>,
): Promise<T> {
  // The pool of transactions makes clients of this class.
  const client = (await asFailure(pool.connect())) as PoolClient & TransactionClient;
  const connection = connectionOf(client);
  connection.unanswered.length = 0;
  client.refused = undefined;
  let isLost = false;
  try {
    const begun = begin(client, schema);
    void connection.write(begun);
    const { result, last = [] } = await body(connection);
    await begun;
    if (client.refused !== undefined) throw client.refused;
    await commit(client, last);
    return result;
  } catch (thrown) {
    isLost = thrown instanceof OutcomeUnknown;
    const error = isLost ? thrown : ((await failureOfWrites(connection)) ?? thrown);
    isLost ||= toFailure(error)?.isConnectionLost === true || !(await isRolledBack(client));
    throw error;
  } finally {
    client.release(isLost);
  }
}

/** The first failure among the writes that were sent without waiting. Later ones failed because of it. */
async function failureOfWrites({
  unanswered,
}: Pick<ClientConnection<unknown>, 'unanswered'>): Promise<unknown> {
  const answers = await Promise.allSettled(unanswered);
  return answers.find((answer) => answer.status === 'rejected')?.reason;
}

/** Begins the transaction. No migration can begin until it ends. @throws {SchemaChanged} */
async function begin(client: PoolClient, schema: KnownSchema): Promise<void> {
  const [, { rows }] = await asFailure(
    Promise.all([
      client.query(BEGIN),
      client.query<{ version: number | null }>({
        name: 'berth_schema',
        text: `SELECT version FROM ${schema.versionTable} LIMIT 1`,
      }),
    ]),
  );
  const { version = null } = rows[0] ?? {};
  if (version !== schema.version) throw new SchemaChanged(version, schema.version);
}

/** @throws {OutcomeUnknown | PostgresFailure} the second if the transaction is certainly rolled back */
async function commit(client: PoolClient, last: readonly QueryConfig[]): Promise<void> {
  try {
    const answers = [...last, COMMIT].map((statement) => client.query(statement));
    const { command } = (await asFailure(Promise.all(answers))).at(-1) as QueryResult;
    // PostgreSQL answers ROLLBACK to the COMMIT of a transaction in which a statement failed.
    if (command !== 'COMMIT')
      throw new Error('a statement of the transaction failed, and its error was lost');
  } catch (error) {
    const failure = toFailure(error);
    if (failure?.isConnectionLost !== true) throw error;
    throw new OutcomeUnknown(`${failure.code || 'connection'}: ${failure.message}`, { cause: failure });
  }
}

async function isRolledBack(client: PoolClient): Promise<boolean> {
  return client.query('ROLLBACK').then(
    () => true,
    () => false,
  );
}

/** Runs `body` on a connection whose reads all see the same snapshot. @throws {PostgresFailure} */
export async function runSnapshot<T, Schema>(
  pool: Pool,
  connectionOf: ConnectionOf<Schema>,
  body: (connection: Connection<Schema>) => Promise<T>,
): Promise<T> {
  const client = await asFailure(pool.connect());
  try {
    await asFailure(client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'));
    return await body(connectionOf(client));
  } finally {
    const isBroken = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    );
    client.release(isBroken);
  }
}

/**
 * Tests that writes work, above all that the disk has room: inserts rows into an existing table and deletes them in the
 * same transaction, since the user may not be allowed to create tables. The dead rows stay until the next vacuum;
 * readers of the version stop at the first row. @throws {PostgresFailure, SchemaChanged}
 */
export async function proveWrites({ pool, schema }: Pick<Pools, 'pool' | 'schema'>): Promise<void> {
  const client = await asFailure(pool.connect());
  let isBroken = true;
  try {
    await begin(client, schema);
    const table = schema.versionTable;
    await asFailure(
      client.query(
        `INSERT INTO ${table} SELECT version FROM ${table}, generate_series(1, ${PROOF_ROWS});
         DELETE FROM ${table} WHERE xmin = pg_current_xact_id()::xid;
         COMMIT`,
      ),
    );
    isBroken = false;
  } finally {
    client.release(isBroken);
  }
}
