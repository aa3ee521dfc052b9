import { getTableColumns } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Db } from './connection.ts';

/** The first row of a query, or null. */
export async function firstOf<Row>(query: PromiseLike<readonly Row[]>): Promise<Row | null> {
  return (await query)[0] ?? null;
}

type Columns<Table extends PgTable> = readonly (keyof Table['$inferInsert'] & string)[];

/** Inserts a row, or overwrites the one with the same `key`, except its columns in `kept`. */
export async function upsert<Table extends PgTable>(
  db: Db,
  table: Table,
  key: Columns<Table>,
  row: Table['$inferInsert'],
  kept: Columns<Table> = [],
): Promise<void> {
  const columns = getTableColumns(table);
  const target = key.flatMap((name) => columns[name] ?? []);
  const changes = { ...row };
  for (const name of [...key, ...kept]) delete changes[name];
  await db
    .insert(table)
    .values(row)
    .onConflictDoUpdate({ target, set: changes as never });
}
