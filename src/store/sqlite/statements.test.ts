import Database from 'better-sqlite3';
import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { toConnection } from './connection.ts';

it('a connection compiles a query once for all values, and not the queries used lately', async () => {
  const file = new Database(':memory:');
  const { prepare } = file;
  const compiled: string[] = [];
  file.prepare = ((source: string) => {
    compiled.push(source);
    return prepare.call(file, source);
  }) as typeof file.prepare;
  const { db } = toConnection(file, {});
  const plus = (more: number, value: number) =>
    db.select({ sum: sql<number>`${value} + ${sql.raw(String(more))}` }).from(sql`(select 1)`);
  for (const value of [1, 2, 3]) expect(await plus(0, value)).toEqual([{ sum: value }]);
  expect(compiled).toHaveLength(1);
  for (let more = 1; more < 600; more++) {
    await plus(more, 1);
    await plus(0, 1);
  }
  expect(compiled).toHaveLength(600);
  await plus(1, 1);
  expect(compiled).toHaveLength(601);
  file.close();
});
