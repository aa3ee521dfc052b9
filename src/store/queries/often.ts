import { sql } from 'drizzle-orm';
import type { Connection, Db } from './connection.ts';

interface Prepared<Rows> {
  execute(values: Record<string, unknown>): PromiseLike<Rows>;
}

/** A query that runs when it is awaited, or is kept to be run with other values. */
interface Query<Rows> extends PromiseLike<Rows> {
  prepare(name: string): Prepared<Rows>;
}

/** What each connection that lasts has been asked, by name. */
const asked = new WeakMap<Db, Map<string, Prepared<unknown>>>();

/**
 * For what is asked all the time: on a connection that lasts, drizzle builds the query and the database compiles it
 * once. `build` makes the same query whatever the values are; `name` tells it from the others.
 */
export async function often<Values extends Record<string, unknown>, Rows>(
  { db, isLasting }: Pick<Connection, 'db' | 'isLasting'>,
  name: string,
  values: Values,
  build: (values: Values) => Query<Rows>,
): Promise<Rows> {
  if (!isLasting) return build(values);
  const known = asked.get(db) ?? new Map<string, Prepared<unknown>>();
  asked.set(db, known);
  let prepared = known.get(name) as Prepared<Rows> | undefined;
  if (prepared === undefined) {
    const places = Object.keys(values).map((key) => [key, sql.placeholder(key)]);
    prepared = build(Object.fromEntries(places) as Values).prepare(name);
    known.set(name, prepared);
  }
  return prepared.execute(values);
}
