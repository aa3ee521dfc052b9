import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import type { Pool, PoolClient } from 'pg';
import {
  awaitWrite,
  type Connection,
  type Lockable,
  type Locking,
  noLocking,
} from '../queries/connection.ts';
import { preparedWrite } from '../queries/prepared.ts';

/** The locking of single statements outside a transaction: they skip locked rows. */
export const skippingLocked: Locking = {
  ...noLocking,
  freeRows: (query) => lockRows(query, 'no key update', { skipLocked: true }),
};

/** Does not depend on the database's locale, which may fold other letters. */
const lower: Connection['lower'] = (text) => sql`lower(${text} COLLATE "C")`;

/** A pool for the shared queries, for statements outside a transaction. */
export function toConnection<Schema>(
  pool: Pool,
  tables: Schema,
  locking: Locking = noLocking,
): Connection<Schema> {
  return { db: drizzle(pool), ...tables, locking, lower, write: awaitWrite };
}

/** A client in a transaction. */
export type ClientConnection<Schema> = Connection<Schema> & {
  /** Writes that were sent without waiting for the answer. */
  unanswered: Promise<unknown>[];
};

/**
 * Returns the connection of a client for the shared queries. It is the same each time, because statements stay prepared
 * on it.
 */
export type ConnectionOf<Schema> = (client: PoolClient) => ClientConnection<Schema>;

/** Connections for transactions. They lock rows that are read in order to be written. */
export function lockingConnections<Schema>(tables: Schema): ConnectionOf<Schema> {
  return connectionsOf(tables, lockingOn);
}

/** Connections for snapshots. They lock nothing. */
export function readingConnections<Schema>(tables: Schema): ConnectionOf<Schema> {
  return connectionsOf(tables, () => noLocking);
}

function connectionsOf<Schema>(
  tables: Schema,
  toLocking: (on: Pick<Connection, 'db' | 'write'>) => Locking,
): ConnectionOf<Schema> {
  const connections = new WeakMap<PoolClient, ClientConnection<Schema>>();
  return (client) => {
    const known = connections.get(client);
    if (known !== undefined) return known;
    const db = drizzle(client);
    const unanswered: Promise<unknown>[] = [];
    const write = async (sent: Promise<unknown>): Promise<void> => {
      // The commit receives the rejection. Until then it must not count as unhandled.
      sent.catch(() => undefined);
      unanswered.push(sent);
    };
    const connection = {
      db,
      ...tables,
      locking: toLocking({ db, write }),
      lower,
      write,
      unanswered,
    };
    connections.set(client, connection);
    return connection;
  };
}

const lockName = preparedWrite(({ db }: Pick<Connection, 'db' | 'write'>, { name }: { name: string }) =>
  db.select({ one: sql`1` }).from(sql`pg_advisory_xact_lock(hashtextextended(${name}, 0))`),
);

const lockSharedName = preparedWrite(({ db }: Pick<Connection, 'db' | 'write'>, { name }: { name: string }) =>
  db.select({ one: sql`1` }).from(sql`pg_advisory_xact_lock_shared(hashtextextended(${name}, 0))`),
);

function lockingOn(on: Pick<Connection, 'db' | 'write'>): Locking {
  return {
    rows: (query) => lockRows(query, 'no key update'),
    sharedRows: (query) => lockRows(query, 'share'),
    freeRows: (query) => query,
    name: (name) => lockName(on, { name }),
    sharedName: (name) => lockSharedName(on, { name }),
  };
}

function lockRows<Query extends Lockable>(query: Query, ...how: Parameters<Lockable['for']>): Query {
  query.for(...how);
  return query;
}
