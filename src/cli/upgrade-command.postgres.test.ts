import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../test/support/databases/postgres.ts';
import { orchestratorStores } from '../compose/stores/orchestrator.ts';
import { tryUpgrade, upgrade } from '../compose/stores/upgrade.ts';
import { readMigrations } from '../store/migrations.ts';
import { prepareDatabase } from '../store/postgres/open-database.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

it('tries the changes in a transaction that is rolled back, then makes them', async () => {
  const database = await server.createDatabase();
  await prepareDatabase(database);
  const known = readMigrations('postgres');
  const version = known.length;
  const next = { version: version + 1, name: 'later', sql: 'CREATE TABLE later (a INTEGER)' };
  const stores = { ...orchestratorStores, migrations: [...known, next] };
  const changes = [{ version: next.version, name: 'later' }];
  const trial = () => tryUpgrade(stores, database);
  expect(await trial()).toEqual({ version, newest: next.version, changes });
  expect(await upgrade(stores, database)).toMatchObject({ version, changes });
  expect(await trial()).toEqual({ version: next.version, newest: next.version, changes: [] });
});
