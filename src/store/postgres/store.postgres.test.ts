import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { describeStore } from '../store.suite.ts';
import { openPostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase();
});
afterAll(() => server[Symbol.asyncDispose]());

describeStore('the PostgreSQL store', {
  setup: async () => {
    await server.empty(url);
    return openPostgresStore(url);
  },
  teardown: (store) => store.close(),
});
