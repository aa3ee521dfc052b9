import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../../test/support/databases/postgres.ts';
import { readMigrations } from '../../migrations.ts';

const INTENTS = 12;
const SINCE = 1_795_219_200_000;

const migrations = readMigrations('marketplace-postgres').filter(({ version }) => version <= INTENTS);
let server: PostgresServer;
let client: Client;
beforeAll(async () => {
  server = await startPostgres();
  client = new Client({ connectionString: await server.createDatabase() });
  await client.connect();
  for (const { sql } of migrations.slice(0, -1)) await client.query(sql);
});
afterAll(async () => {
  await client.end();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => client.query('BEGIN'));
afterEach(() => client.query('ROLLBACK'));

/** Builds a statement that inserts a row with a value for every required column. */
async function inserted(table: string, row: Record<string, string>): Promise<string> {
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = '${table}' AND is_nullable = 'NO'`,
  );
  const filled = {
    ...Object.fromEntries(
      columns.map(({ name, type }) => [
        name,
        type === 'boolean' ? 'true' : /json|text/.test(type) ? "'{}'" : '7',
      ]),
    ),
    ...row,
  };
  return `INSERT INTO ${table} (${Object.keys(filled)}) VALUES (${Object.values(filled)})`;
}

it.each([
  ['deployments', { kind: 'pause', since: SINCE, isSent: true }, {}, { attempt: 1, sentAt: SINCE }],
  [
    'volumes',
    { kind: 'resize', since: SINCE, toSizeGb: 300 },
    {},
    { attempt: 1, sentAt: SINCE, toSizeGb: 300 },
  ],
  ['volumes', { kind: 'create', since: SINCE }, {}, { attempt: 0, sentAt: null }],
  ['volumes', { kind: 'create', since: SINCE }, { create_sent_at: '9' }, { attempt: 1, sentAt: 9 }],
])(
  'what an earlier version left under way in %s is an intent on PostgreSQL: %o, %o',
  async (table, action, more, is) => {
    const row = { ...more, user_id: "'usr-1'", action: `'${JSON.stringify(action)}'` };
    await client.query(`SET LOCAL session_replication_role = replica; ${await inserted(table, row)}`);
    await client.query(migrations.at(-1)?.sql ?? '');
    const { rows } = await client.query<{ action: object }>(`SELECT action FROM ${table}`);
    const { isSent: _, ...kept } = { isSent: true, ...action };
    expect(rows[0]?.action).toEqual({ ...kept, id: 7, by: 'usr-1', until: null, answer: null, ...is });
  },
);
