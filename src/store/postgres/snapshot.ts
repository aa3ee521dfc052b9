import { drizzle } from 'drizzle-orm/node-postgres';
import type { Pool } from 'pg';
import type { Db } from '../queries/connection.ts';
import { asFailure } from './postgres-error.ts';

/**
 * Runs `body` on a connection whose reads are all of the moment of the first.
 *
 * @throws {PostgresFailure}
 */
export async function runSnapshot<T>(pool: Pool, body: (db: Db) => Promise<T>): Promise<T> {
  const client = await asFailure(pool.connect());
  try {
    await asFailure(client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'));
    return await body(drizzle(client));
  } finally {
    const isBroken = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    );
    client.release(isBroken);
  }
}
