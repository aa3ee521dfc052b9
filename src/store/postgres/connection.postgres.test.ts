import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import type { Connection } from '../queries/connection.ts';
import { prepared } from '../queries/prepared.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { postgres } from '../schema/postgres.ts';
import { lockingConnections, toConnection } from './connection.ts';
import { prepareDatabase } from './open-database.ts';
import { createPool, TRANSACTIONS } from './pool.ts';

const tables = orchestratorTables(postgres);
const markByName = prepared(({ db, marks, locking }: Connection, { name }: { name: 'restored_from' }) =>
  locking.rows(db.select().from(marks).where(eq(marks.name, name))),
);
const PREPARED = 'SELECT statement FROM pg_prepared_statements ORDER BY prepare_time';

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
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

it('statements of a transaction after a failed one fail, and each can be repeated', async () => {
  const pool = createPool(url, 1, TRANSACTIONS);
  const client = await pool.connect();
  const ask = (name: string, text: string, ...values: unknown[]) => client.query({ name, text, values });
  const askAll = async (divisor: number) => {
    const [, ...answers] = await Promise.allSettled([
      client.query('BEGIN'),
      ask('first', 'SELECT 1 AS found'),
      ask('second', 'SELECT 1 / $1::int AS found', divisor),
      ask('third', 'SELECT 3 AS found'),
      client.query('ROLLBACK'),
    ]);
    return answers.slice(0, 3);
  };
  const [first, ...failed] = await askAll(0);
  expect(first).toMatchObject({ value: { rows: [{ found: 1 }] } });
  expect(failed).toMatchObject([{ reason: { code: '22012' } }, { reason: { code: '25P02' } }]);
  for (let again = 0; again < 2; again++)
    expect(await askAll(1)).toMatchObject([1, 1, 3].map((found) => ({ value: { rows: [{ found }] } })));
  client.release();
  await pool.end();
});

it('a statement outside a transaction writes nothing, such as one behind a BEGIN that was refused', async () => {
  const pool = createPool(url, 1, TRANSACTIONS);
  await expect(
    pool.query("INSERT INTO marks (name, at) VALUES ('losses_accepted_until', 1)"),
  ).rejects.toThrow(/read-only transaction/);
  await pool.end();
});
