import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { toConnection } from './connection.ts';

it('compares columns with no bare placeholder, for whose values SQLite would compile an ordered query anew', () => {
  const database = new Database(':memory:');
  database.exec('CREATE TABLE notes (id TEXT, about TEXT, at INTEGER)');
  database.exec("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'x', 1), ('c', 'x', 2), ('d', 'y', 2)");
  const compiled: string[] = [];
  const prepare = database.prepare.bind(database);
  database.prepare = ((source: string) => {
    compiled.push(source);
    return prepare(source);
  }) as typeof database.prepare;
  toConnection(database, {});
  const query = (mark: string) =>
    `SELECT id FROM notes WHERE about = ${mark} AND (at, id) > (${mark}, ${mark}) ORDER BY at, id limit ${mark}`;
  const found = database.prepare(query('?')).pluck().all('x', 1, 'a', 2);
  expect([found, compiled]).toEqual([['b', 'c'], [query('+?')]]);
  database.close();
});
