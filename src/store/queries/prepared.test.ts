import Database from 'better-sqlite3';
import { and, eq, gt, inArray } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { sqlite } from '../schema/sqlite.ts';
import { toConnection } from '../sqlite/connection.ts';
import type { Connection } from './connection.ts';
import { prepared, preparedList } from './prepared.ts';
import { upsert } from './rows.ts';

const tables = {
  notes: sqlite.table('notes', {
    id: sqlite.text('id').primaryKey(),
    text: sqlite.text('text'),
    at: sqlite.bigint('at'),
  }),
};
type Notes = Connection<typeof tables>;

function connect(): Notes {
  const database = new Database(':memory:');
  database.exec(
    "CREATE TABLE notes (id TEXT PRIMARY KEY, text TEXT, at INTEGER); INSERT INTO notes VALUES ('a', 'A', 1), ('b', 'B', 2)",
  );
  return toConnection(database, tables);
}

it('builds a query once for each connection, and runs it with the values of each call', async () => {
  let built = 0;
  const noteById = prepared(({ db, notes }: Notes, { id }: { id: string }) => {
    built++;
    return db.select().from(notes).where(eq(notes.id, id));
  });
  const [first, second] = [connect(), connect()];
  expect(await noteById(first, { id: 'a' })).toEqual([{ id: 'a', text: 'A', at: 1 }]);
  expect(await noteById(first, { id: 'b' })).toEqual([{ id: 'b', text: 'B', at: 2 }]);
  expect(built).toBe(1);
  expect(await noteById(second, { id: 'c' })).toEqual([]);
  expect(built).toBe(2);
});

it('refuses other keys than those of its first call, which would be ignored', async () => {
  const update = prepared(
    ({ db, notes }: Notes, { id, ...set }: { id: string; text?: string | null; at?: number }) =>
      db.update(notes).set(set).where(eq(notes.id, id)).returning(),
  );
  const connection = connect();
  expect(await update(connection, { id: 'a', at: 7 })).toEqual([{ id: 'a', text: 'A', at: 7 }]);
  await expect(update(connection, { id: 'a', at: 8, text: null })).rejects.toThrow(
    'other keys: id, at, text',
  );
  expect(await update(connection, { id: 'b', at: 8 })).toEqual([{ id: 'b', text: 'B', at: 8 }]);
});

it('builds a query with a list once for each length', async () => {
  let built = 0;
  const notesOf = preparedList(({ db, notes }: Notes, ids, { after }: { after: number }) => {
    built++;
    return db
      .select({ id: notes.id })
      .from(notes)
      .where(and(inArray(notes.id, ids), gt(notes.at, after)));
  });
  const connection = connect();
  expect(await notesOf(connection, ['a', 'b'], { after: 0 })).toEqual([{ id: 'a' }, { id: 'b' }]);
  expect(await notesOf(connection, ['b', 'c'], { after: 1 })).toEqual([{ id: 'b' }]);
  expect(await notesOf(connection, ['a'], { after: 1 })).toEqual([]);
  expect(built).toBe(2);
});

it('writes rows with the columns of the table, whatever else an object carries', async () => {
  const connection = connect();
  const note = { id: 'c', text: 'C', at: 3 };
  await upsert(connection, tables.notes, ['id'], note);
  const shown = { ...note, text: 'D', isShown: true };
  await upsert(connection, tables.notes, ['id'], shown);
  const { db, notes } = connection;
  expect(await db.select().from(notes).where(eq(notes.id, 'c'))).toEqual([{ id: 'c', text: 'D', at: 3 }]);
});
