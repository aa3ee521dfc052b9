import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { toConnection } from './connection.ts';

const RUNS = 500;
const COLUMNS = Array.from({ length: 40 }, (_, number) => `column${number}`);
const ASK = `SELECT ${COLUMNS.join(', ')} FROM notes WHERE about = ? ORDER BY at, id`;

/** The fastest of many runs: what else the machine does makes none faster. */
function fastest(run: (index: number) => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let index = 0; index < RUNS; index++) {
    const startedAt = performance.now();
    run(index);
    least = Math.min(least, performance.now() - startedAt);
  }
  return least;
}

it('compiles a query once, and not anew for each value', () => {
  const asked = (isOurs: boolean): number => {
    const database = new Database(':memory:');
    database.exec(`CREATE TABLE notes (id TEXT PRIMARY KEY, about TEXT, at INTEGER, ${COLUMNS.join(', ')})`);
    if (isOurs) toConnection(database, {});
    const statement = database.prepare(ASK);
    const leastMs = fastest((index) => statement.all(String(index)));
    database.close();
    return leastMs;
  };
  expect(asked(true)).toBeLessThan(asked(false) / 3);
});
