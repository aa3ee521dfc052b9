import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import type { Pool, PoolClient } from 'pg';
import { type Connection, type Db, type Lockable, type Locking, noLocking } from '../queries/connection.ts';

/** For one statement outside of a transaction: it passes over the rows that somebody holds. */
export const skippingLocked: Locking = {
  ...noLocking,
  freeRows: (query) => lockRows(query, 'no key update', { skipLocked: true }),
};

/** A pool as the shared queries see it: for statements outside of a transaction. */
export function toConnection<Schema>(
  pool: Pool,
  tables: Schema,
  locking: Locking = noLocking,
): Connection<Schema> {
  return { db: drizzle(pool), tables, locking };
}

/** A client as the shared queries see it, always the same for one client: statements stay prepared on it. */
export type ConnectionOf<Schema> = (client: PoolClient) => Connection<Schema>;

/** For transactions: what is read to be written is locked. */
export function lockingConnections<Schema>(tables: Schema): ConnectionOf<Schema> {
  return connectionsOf(tables, lockingOn);
}

/** For snapshots, which lock nothing. */
export function readingConnections<Schema>(tables: Schema): ConnectionOf<Schema> {
  return connectionsOf(tables, () => noLocking);
}

function connectionsOf<Schema>(tables: Schema, toLocking: (db: Db) => Locking): ConnectionOf<Schema> {
  const connections = new WeakMap<PoolClient, Connection<Schema>>();
  return (client) => {
    const known = connections.get(client);
    if (known !== undefined) return known;
    const db = drizzle(client);
    const connection = { db, tables, locking: toLocking(db) };
    connections.set(client, connection);
    return connection;
  };
}

function lockingOn(db: Db): Locking {
  return {
    rows: (query) => lockRows(query, 'no key update'),
    sharedRows: (query) => lockRows(query, 'share'),
    freeRows: (query) => query,
    name: async (name) =>
      void (await db.execute(sql`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`)),
  };
}

function lockRows<Query extends Lockable>(query: Query, ...how: Parameters<Lockable['for']>): Query {
  query.for(...how);
  return query;
}
