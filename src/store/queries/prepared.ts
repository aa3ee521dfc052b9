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
 * same query for all values, and every call must give the same keys.
 */
export function prepared<On extends { db: Db }, Values extends object, Rows>(
  build: (connection: On, values: Values) => Query<Rows>,
): (connection: On, values: Values) => Promise<Rows> {
  const statements = new WeakMap<On, { statement: Statement<Rows>; keys: number }>();
  return async (connection, values) => {
    const keys = Object.keys(values);
    let known = statements.get(connection);
    if (known === undefined) {
      const placeholders = Object.fromEntries(keys.map((key) => [key, sql.placeholder(key)]));
      const statement = build(connection, placeholders as Values).prepare(`berth_${++names}`);
      known = { statement, keys: keys.length };
      statements.set(connection, known);
    }
    // Drizzle throws for a key that is missing, and ignores one that is new.
    if (keys.length !== known.keys)
      throw new Error(`a prepared query was given other keys: ${keys.join(', ')}`);
    return known.statement.execute(values as Record<string, unknown>);
  };
}

/** {@link prepared}, for a list of texts. Each length has a statement of its own, so there must be few lengths. */
export function preparedList<On extends { db: Db }, Values extends object, Rows>(
  build: (connection: On, texts: string[], values: Values) => Query<Rows>,
): (connection: On, texts: readonly string[], values: Values) => Promise<Rows> {
  const byLength = new Map<number, (connection: On, all: Values & Record<string, string>) => Promise<Rows>>();
  return (connection, texts, values) => {
    const numbered = Object.fromEntries(texts.map((text, index) => [`text${index}`, text]));
    const names = Object.keys(numbered);
    let run = byLength.get(texts.length);
    if (run === undefined) {
      run = prepared((on, all) =>
        build(
          on,
          names.map((name) => all[name] as string),
          all,
        ),
      );
      byLength.set(texts.length, run);
    }
    return run(connection, { ...values, ...numbered } as Values & Record<string, string>);
  };
}

/** {@link prepared}, for a write without a result: see {@link Connection.write}. */
export function preparedWrite<On extends Pick<Connection, 'db' | 'write'>, Values extends object>(
  build: (connection: On, values: Values) => Query<unknown>,
): (connection: On, values: Values) => Promise<void> {
  const run = prepared(build);
  return (connection, values) => connection.write(run(connection, values));
}
