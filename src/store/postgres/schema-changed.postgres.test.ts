import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { account, claim, dueWork, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../../test/support/time/until.ts';
import { SchemaChanged } from '../database-refused.ts';
import { openMarketplacePostgresStore } from '../marketplace/postgres/store.ts';
import { type MigrationsOf, readMigrations } from '../migrations.ts';
import { type DatabaseFormat, marketplaceFormat, orchestratorFormat } from './database-format.ts';
import { prepareDatabase } from './open-database.ts';
import { openPostgresStore } from './store.ts';

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres();
});
beforeEach(async () => {
  url = await server.createDatabase('orchestrator');
});
afterAll(() => server[Symbol.asyncDispose]());

/** Migrates as a later Berth does at startup. */
async function migrateFurther(sql: string, format: DatabaseFormat = orchestratorFormat): Promise<void> {
  const migrations = readMigrations(format.migrations as MigrationsOf);
  const next = { version: (migrations.at(-1)?.version ?? 0) + 1, sql };
  await prepareDatabase(url, { migrations: [...migrations, next] }, format);
}

describe('a server of the old version that was forgotten, or paused, through an upgrade [old-server-writes-nothing]', () => {
  it('writes nothing into the new tables, and says why', async () => {
    const old = await openPostgresStore(url);
    await old.transact((tx) => tx.marks.put('restored_from', 7));
    await migrateFurther('ALTER TABLE marks RENAME TO marks_of_old');
    await expect(old.transact((tx) => tx.marks.put('restored_from', 8))).rejects.toThrow(SchemaChanged);
    await expect(old.proveWrites()).rejects.toThrow(/another Berth has migrated the database/);
    expect(await server.query('SELECT at FROM marks_of_old', url)).toEqual([{ at: '7' }]);
    await old.close();
  });

  it('claims no work', async () => {
    const old = await openPostgresStore(url);
    await old.transact(async (tx) => {
      await tx.credentials.insertAccount(account);
      await tx.instances.insert(instance('a'));
      await tx.work.put({ ...dueWork, resourceId: 'a' });
    });
    await migrateFurther('SELECT 1');
    expect(await old.claimWork(claim)).toEqual([]);
    await old.close();
    await server.query('UPDATE berth_schema SET version = version - 1', url);
    const current = await openPostgresStore(url);
    expect(await current.claimWork(claim)).toHaveLength(1);
    await current.close();
  });

  it('writes nothing for a marketplace either', async () => {
    url = await server.createDatabase('marketplace');
    const old = await openMarketplacePostgresStore(url);
    await migrateFurther('SELECT 1', marketplaceFormat);
    await expect(old.transact(async () => undefined)).rejects.toThrow(SchemaChanged);
    await old.close();
  });
});

const WAITS = `SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

it('a migration waits for the transactions that have begun, and those that begin meanwhile are refused', async () => {
  const old = await openPostgresStore(url);
  const inside = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const first = old.transact(async (tx) => {
    await tx.work.of('none');
    begun.resolve();
    await inside.promise;
    await tx.marks.put('restored_from', 7);
  });
  await begun.promise;
  const migrated = migrateFurther("UPDATE marks SET at = at + 1 WHERE name = 'restored_from'");
  await until('the migration waits', async () => (await server.query(WAITS, url)).length === 1);
  const second = old.transact((tx) => tx.marks.put('restored_from', 100)).catch((error) => error);
  await until('the second one waits too', async () => (await server.query(WAITS, url)).length === 2);
  inside.resolve();
  await Promise.all([first, migrated]);
  expect(await second).toBeInstanceOf(SchemaChanged);
  expect(await server.query("SELECT at FROM marks WHERE name = 'restored_from'", url)).toEqual([{ at: '8' }]);
  await old.close();
});
