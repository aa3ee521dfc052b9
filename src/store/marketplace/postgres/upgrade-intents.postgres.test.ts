import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../../test/support/databases/postgres.ts';
import { readMigrations } from '../../migrations.ts';

const INTENTS = 12;
const SINCE = 1_795_219_200_000;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Builds a statement that inserts a row with a value for every required column. */
async function inserted(url: string, table: string, row: Record<string, string>): Promise<string> {
  const columns = (await server.query(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = '${table}' AND is_nullable = 'NO'`,
    url,
  )) as { name: string; type: string }[];
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
    const url = await server.createDatabase();
    const migrations = readMigrations('marketplace-postgres').filter(({ version }) => version <= INTENTS);
    for (const { sql } of migrations.slice(0, -1)) await server.query(sql, url);
    const row = { ...more, user_id: "'usr-1'", action: `'${JSON.stringify(action)}'` };
    const insert = await inserted(url, table, row);
    await server.query(`SET session_replication_role = replica; ${insert}`, url);
    await server.query(migrations.at(-1)?.sql ?? '', url);
    const [stored] = (await server.query(`SELECT action FROM ${table}`, url)) as { action: object }[];
    const { isSent: _, ...kept } = { isSent: true, ...action };
    expect(stored?.action).toEqual({ ...kept, id: 7, by: 'usr-1', until: null, answer: null, ...is });
  },
);
