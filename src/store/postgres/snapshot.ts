import type { Pool } from 'pg';
import type { Connection } from '../queries/connection.ts';
import type { ConnectionOf } from './connection.ts';
import { asFailure } from './postgres-error.ts';

/**
 * Runs `body` on a connection whose reads are all of the moment of the first.
 *
 * @throws {PostgresFailure}
 */
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
