import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../test/support/databases/postgres.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { readMigrations } from '../store/migrations.ts';
import { prepareDatabase } from '../store/postgres/open-database.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

it('tries the changes in a transaction that is rolled back, then makes them', async () => {
  const database = await server.createDatabase();
  const all = readMigrations('postgres');
  const newest = all.at(-1)?.version ?? 0;
  await prepareDatabase(database, { migrations: all.slice(0, -2) });
  const run = async (...args: string[]): Promise<{ version: number; changes: object[] }> => {
    const { code, stdout, stderr } = await runMain(['upgrade', '--json', ...args, '--database', database]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };
  expect((await run('--dry-run')).changes).toHaveLength(2);
  expect(await run()).toMatchObject({ version: all.at(-3)?.version, newest });
  expect(await run('--dry-run')).toMatchObject({ version: newest, changes: [] });
});
