import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import type { Connection } from '../queries/connection.ts';
import { prepared } from '../queries/prepared.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { postgres } from '../schema/postgres.ts';
import { lockingConnections, toConnection } from './connection.ts';
import { prepareDatabase } from './open-database.ts';
import { createPool } from './pool.ts';

const tables = orchestratorTables(postgres);
const markByName = prepared(
  ({ db, tables: { marks }, locking }: Connection, { name }: { name: 'restored_from' }) =>
    locking.rows(db.select().from(marks).where(eq(marks.name, name))),
);
const PREPARED = 'SELECT statement FROM pg_prepared_statements ORDER BY prepare_time';

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase();
  await prepareDatabase(url);
});
afterAll(() => server[Symbol.asyncDispose]());

it('the server prepares a query once for each connection, and once more where it locks', async () => {
  const pool = createPool(url, 1);
  const connectionOf = lockingConnections(tables);
  const outside = toConnection(pool, tables);
  for (let index = 0; index < 3; index++) {
    await markByName(outside, { name: 'restored_from' });
    const client = await pool.connect();
    await markByName(connectionOf(client), { name: 'restored_from' });
    client.release();
  }
  const { rows } = await pool.query<{ statement: string }>(PREPARED);
  await pool.end();
  expect(rows.map(({ statement }) => statement)).toEqual([
    expect.stringMatching(/^select .* from "marks" where "marks"."name" = \$1$/),
    expect.stringMatching(/^select .* from "marks" where "marks"."name" = \$1 for no key update$/),
  ]);
});
