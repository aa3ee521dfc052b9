import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { toConnection } from './connection.ts';

const RUNS = 500;
const COLUMNS = Array.from({ length: 40 }, (_, number) => `column${number}`);
const ASK = `SELECT ${COLUMNS.join(', ')} FROM notes WHERE about = ? ORDER BY at, id`;

/** The median duration of a run, in milliseconds. Pauses and outliers do not affect it. */
function medianOf(run: (index: number) => unknown): number {
  const tookMs = Array.from({ length: RUNS }, (_, index) => {
    const startedAt = performance.now();
    run(index);
    return performance.now() - startedAt;
  });
  return tookMs.sort((one, other) => one - other)[RUNS / 2] as number;
}

it('compiles a query once, and not anew for each value', () => {
  const asked = (isOurs: boolean): number => {
    const database = new Database(':memory:');
    database.exec(`CREATE TABLE notes (id TEXT PRIMARY KEY, about TEXT, at INTEGER, ${COLUMNS.join(', ')})`);
    if (isOurs) toConnection(database, {});
    const statement = database.prepare(ASK);
    const tookMs = medianOf((index) => statement.all(String(index)));
    database.close();
    return tookMs;
  };
  expect(asked(true)).toBeLessThan(asked(false) / 3);
});
