import { afterAll, beforeAll, expect, it } from 'vitest';
import { readMigrations } from '../../src/store/migrations.ts';
import { prepareDatabase } from '../../src/store/postgres/open-database.ts';
import { type PostgresServer, startPostgres } from '../support/databases/postgres.ts';
import { createClient } from '../support/http/http-client.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

it('a server that was paused through an upgrade writes nothing when it goes on, and is not ready [old-server-paused]', async () => {
  using folder = temporaryFolder();
  const database = await postgres.createDatabase();
  const config = writeFastConfig(folder.path);
  await using old = await startServing(['--config', config, '--database', database]);
  const client = createClient(old.baseUrl, old.apiKey);
  const { body } = await client.request('POST', '/instances', { body: instanceRequest() });
  const path = `/instances/${body['id']}`;
  await client.waitFor(path, 'ONLINE');

  old.child.kill('SIGSTOP');
  const migrations = readMigrations('postgres');
  const next = { version: migrations.length + 1, sql: 'ALTER TABLE instances ADD COLUMN later TEXT' };
  await prepareDatabase(database, { migrations: [...migrations, next] });
  const before = await postgres.query('SELECT * FROM instances', database);
  old.child.kill('SIGCONT');

  const refused = await client.request('POST', '/instances', { body: instanceRequest() });
  expect(refused.status).toBe(503);
  expect((await client.request('DELETE', path)).status).toBe(503);
  await until('it is not ready', async () => (await fetch(new URL('/readyz', old.baseUrl))).status === 503);
  expect(old.stderr).toContain('another Berth has migrated the database');
  expect(await postgres.query('SELECT * FROM instances', database)).toEqual(before);
  expect(await postgres.query('SELECT * FROM work', database)).toEqual([]);
  expect((await client.request('GET', path)).body).toMatchObject({ status: 'ONLINE' });

  const again = startServing(['--config', config, '--database', database]);
  await expect(again).rejects.toThrow(/is newer \(version \d+\) than this program/);
});
