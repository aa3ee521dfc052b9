import { sql } from 'drizzle-orm';
import type { Connection, Db } from './connection.ts';

interface Statement<Rows> {
  execute(values: Record<string, unknown>): PromiseLike<Rows>;
}

/** A query that runs when awaited, or can be prepared for other values. */
interface Query<Rows> extends PromiseLike<Rows> {
  prepare(name: string): Statement<Rows>;
}

/** Names are unique in the process: each PostgreSQL connection keeps its statements by name. */
let names = 0;

/**
 * A frequent query: drizzle builds it, and the database compiles it, once for each connection. `build` must return the
 * same query for all values of the same keys.
 */
export function prepared<On extends { db: Db }, Values extends object, Rows>(
  build: (connection: On, values: Values) => Query<Rows>,
): (connection: On, values: Values) => Promise<Rows> {
  /** By the keys of the values: an update sets only the given columns. */
  const statements = new WeakMap<On, Map<string, Statement<Rows>>>();
  return async (connection, values) => {
    const known = statements.get(connection) ?? new Map<string, Statement<Rows>>();
    statements.set(connection, known);
    const keys = Object.keys(values);
    const shape = keys.join();
    let statement = known.get(shape);
    if (statement === undefined) {
      const placeholders = Object.fromEntries(keys.map((key) => [key, sql.placeholder(key)]));
      statement = build(connection, placeholders as Values).prepare(`berth_${++names}`);
      known.set(shape, statement);
    }
    return statement.execute(values as Record<string, unknown>);
  };
}

/** {@link prepared}, for a write without a result: see {@link Connection.write}. */
export function preparedWrite<On extends Pick<Connection, 'db' | 'write'>, Values extends object>(
  build: (connection: On, values: Values) => Query<unknown>,
): (connection: On, values: Values) => Promise<void> {
  const run = prepared(build);
  return (connection, values) => connection.write(run(connection, values));
}
