import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/postgres.ts';
import { describeStore } from '../store.suite.ts';
import { openPostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase();
});
afterAll(() => server[Symbol.asyncDispose]());

async function empty(): Promise<void> {
  const tables = await server.query(
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'berth_schema'",
    url,
  );
  if (tables.length > 0)
    await server.query(`TRUNCATE ${tables.map(({ relname }) => `"${relname}"`).join()}`, url);
}

describeStore('the PostgreSQL store', {
  setup: async () => {
    await empty();
    return openPostgresStore(url);
  },
  teardown: (store) => store.close(),
});
