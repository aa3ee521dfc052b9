import { getTableColumns } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Db } from './connection.ts';
import { asEncoded, encodeRow } from './encoded-row.ts';
import { prepared } from './prepared.ts';

/** The first row of a query, or null. */
export async function firstOf<Row>(query: PromiseLike<readonly Row[]>): Promise<Row | null> {
  return (await query)[0] ?? null;
}

type Columns<Table extends PgTable> = readonly (keyof Table['$inferInsert'] & string)[];

/** One upsert per table. All rows of a table are written with the same columns, key and kept columns. */
const upserts = new WeakMap<PgTable, (connection: { db: Db }, row: object) => Promise<unknown>>();

/** Inserts a whole row, or overwrites the one with the same `key`, except its columns in `kept`. */
export async function upsert<Table extends PgTable>(
  connection: { db: Db },
  table: Table,
  key: Columns<Table>,
  row: Table['$inferSelect'],
  kept: Columns<Table> = [],
): Promise<void> {
  let put = upserts.get(table);
  if (put === undefined) {
    const columns = getTableColumns(table);
    const target = key.flatMap((name) => columns[name] ?? []);
    put = prepared(({ db }, placeholders) => {
      const changes: Record<string, unknown> = { ...asEncoded(placeholders) };
      for (const name of [...key, ...kept]) delete changes[name];
      const into: PgTable = table;
      return db.insert(into).values(asEncoded(placeholders)).onConflictDoUpdate({ target, set: changes });
    });
    upserts.set(table, put);
  }
  await put(connection, encodeRow(table, row));
}
