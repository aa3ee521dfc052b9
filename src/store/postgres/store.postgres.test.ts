import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { describeStore } from '../store.suite.ts';
import { reusable } from './reusable.fixture.ts';
import { openPostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;
const store = reusable(() => openPostgresStore(url));

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('orchestrator');
});
afterAll(async () => {
  await store.close();
  await server[Symbol.asyncDispose]();
});

describeStore('the PostgreSQL store', {
  setup: async () => {
    await server.empty(url);
    return store.get();
  },
  teardown: async () => undefined,
});
