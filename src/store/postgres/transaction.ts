import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import { StoreUnavailable } from '../../ports/errors.ts';
import { SchemaChanged } from '../database-refused.ts';
import type { Connection } from '../queries/connection.ts';
import type { TransactionClient } from './client.ts';
import type { ClientConnection, ConnectionOf } from './connection.ts';
import type { KnownSchema } from './database-format.ts';
import { asFailure, fromPostgres, type PostgresFailure, toFailure } from './errors.ts';
import { IDLE_IN_TRANSACTION_MS, serverRunOf } from './pool.ts';
import { SERVER_RUN } from './server-run.ts';

const MAX_TRIES = 6;
/** A retry sees the conflicting row. If it still conflicts, the caller gets the error. */
const MAX_TRIES_OF_DUPLICATE = 3;
/** Pause before a retry, in milliseconds. It grows with each. */
const PAUSE_MS = [5, 40] as const;
/** How long to ask for an outcome. By then the server has rolled back a transaction whose client is silent. */
const ASK_FOR_MS = IDLE_IN_TRANSACTION_MS + 1_000;
const ASK_AGAIN_AFTER_MS = 100;

/** These rows are more than any transaction writes: about 1.5 MiB. */
const PROOF_ROWS = 40_000;

/** Both are prepared; otherwise the server would parse and plan them each time. */
const BEGIN: QueryConfig = { name: 'berth_begin', text: 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE' };
const COMMIT: QueryConfig = { name: 'berth_end', text: 'COMMIT' };

/** Writes a record so that its commit waits for standbys, and changes no data. */
const CONFIRM = "SELECT pg_logical_emit_message(true, 'berth', '')";

export interface Pools {
  /** For `TRANSACTIONS`. */
  pool: Pool;
  /** For statements outside transactions, and to look up the outcome of one whose connection was lost. */
  statementPool: Pool;
  /** The schema that transactions require. */
  schema: KnownSchema;
}

export interface Outcome<T> {
  result: T;
  /** Statements that are sent right before the commit, in its packet. */
  last?: readonly QueryConfig[];
}

/** The connection broke at the commit, and the transaction was rolled back. */
class RolledBack extends StoreUnavailable {}

/**
 * The connection broke at the commit, and the outcome could not be looked up. The commit may have happened, or may
 * still happen.
 */
export class OutcomeUnknown extends StoreUnavailable {}

/**
 * Runs `body` in a transaction. Retries if a concurrent one won, and looks up the outcome of a commit without an
 * answer.
 * @throws {OutcomeUnknown} if the outcome cannot be found out
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
      const mayTryAgain = error instanceof RolledBack || failure?.isLostRace === true;
      const tryAtMost = failure?.isDuplicate ? MAX_TRIES_OF_DUPLICATE : MAX_TRIES;
      if (!mayTryAgain || tries >= tryAtMost) throw fromPostgres(error);
      await pause(randomInt(...PAUSE_MS) * tries);
    }
  }
}

async function runOnce<T, Schema>(
  { pool, statementPool, schema }: Pools,
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
    const id = await begun;
    if (client.refused !== undefined) throw client.refused;
    const lost = await commit(client, last);
    if (lost !== undefined) {
      isLost = true;
      await settle(statementPool, { id, run: serverRunOf(client) }, lost);
    }
    return result;
  } catch (thrown) {
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

/**
 * Begins the transaction and returns its id, by which another connection can look up its outcome. No migration can
 * begin until it ends. @throws {SchemaChanged}
 */
async function begin(client: PoolClient, schema: KnownSchema): Promise<string> {
  const [, { rows }] = await asFailure(
    Promise.all([
      client.query(BEGIN),
      client.query<{ id: string; version: number | null }>({
        name: 'berth_schema',
        text: `SELECT pg_current_xact_id()::text AS id, version FROM ${schema.versionTable} LIMIT 1`,
      }),
    ]),
  );
  const { id = '', version = null } = rows[0] ?? {};
  if (version !== schema.version) throw new SchemaChanged(version, schema.version);
  return id;
}

/**
 * Commits. Returns the failure if the answer was lost. @throws {PostgresFailure} if the transaction is certainly rolled
 * back
 */
async function commit(
  client: PoolClient,
  last: readonly QueryConfig[],
): Promise<PostgresFailure | undefined> {
  try {
    const answers = [...last, COMMIT].map((statement) => client.query(statement));
    const { command } = (await asFailure(Promise.all(answers))).at(-1) as QueryResult;
    // PostgreSQL answers ROLLBACK to the COMMIT of a transaction in which a statement failed.
    if (command !== 'COMMIT')
      throw new Error('a statement of the transaction failed, and its error was lost');
    return undefined;
  } catch (error) {
    const failure = toFailure(error);
    if (failure?.isConnectionLost !== true) throw error;
    return failure;
  }
}

/** A transaction, and the server run in which it began. */
interface Begun {
  id: string;
  run: string | undefined;
}

/**
 * Returns if the transaction is committed and synchronous standbys have it.
 * @throws {RolledBack} if it is not committed
 * @throws {OutcomeUnknown} if that cannot be determined
 */
async function settle(statementPool: Pool, begun: Begun, lost: PostgresFailure): Promise<void> {
  const giveUpAt = performance.now() + ASK_FOR_MS;
  const unknown = new OutcomeUnknown(`${lost.code || 'connection'}: ${lost.message}`, { cause: lost });
  for (;;) {
    const status = await outcomeOf(statementPool, begun).catch(() => Promise.reject(unknown));
    if (status === 'committed') return confirm(statementPool).catch(() => Promise.reject(unknown));
    if (status === 'aborted')
      throw new RolledBack('the connection broke, and the transaction is rolled back', { cause: lost });
    if (status === null || performance.now() > giveUpAt) throw unknown;
    await pause(ASK_AGAIN_AFTER_MS);
  }
}

/**
 * Returns once synchronous standbys have all commits so far. A transaction whose wait for them was cancelled reads as
 * committed, but is lost if one takes over. A standby that has a later commit also has that one.
 */
async function confirm(statementPool: Pool): Promise<void> {
  const emptyCommit = { text: CONFIRM, query_timeout: ASK_FOR_MS };
  await statementPool.query(emptyCommit);
}

/** The outcome of a transaction. Null if it is too old, or if its id may belong to another transaction. */
async function outcomeOf(
  statementPool: Pool,
  { id, run }: Begun,
): Promise<'committed' | 'aborted' | 'in progress' | null> {
  const text = `SELECT pg_xact_status($1::xid8) AS status, ${SERVER_RUN} AS run`;
  const { rows } = await statementPool.query(text, [id]);
  return rows[0]?.run === run ? rows[0]?.status : null;
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
