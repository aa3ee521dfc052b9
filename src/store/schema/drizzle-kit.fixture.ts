import { readFileSync } from 'node:fs';
import {
  type DrizzleSnapshotJSON,
  type DrizzleSQLiteSnapshotJSON,
  generateDrizzleJson,
  generateMigration,
  generateSQLiteDrizzleJson,
  generateSQLiteMigration,
} from 'drizzle-kit/api';
import type { MigrationsOf } from '../migrations.ts';
import { marketplaceTables, requestCountTables } from './marketplace.ts';
import { orchestratorTables } from './orchestrator.ts';
import { type Dialect, postgres } from './postgres.ts';
import { sqlite } from './sqlite.ts';

/** The tables of each database, as defined. */
export const tablesOf: Record<MigrationsOf, (dialect?: Dialect) => Record<string, unknown>> = {
  sqlite: (dialect = sqlite) => orchestratorTables(dialect),
  postgres: (dialect = postgres) => orchestratorTables(dialect),
  'marketplace-sqlite': (dialect = sqlite) => marketplaceTables(dialect),
  'marketplace-postgres': (dialect = postgres) => ({
    ...marketplaceTables(dialect),
    ...requestCountTables(dialect),
  }),
};

export const databases = Object.keys(tablesOf) as MigrationsOf[];

/** Tables as drizzle-kit describes them, by their names in the database. */
export type Snapshot = Record<string, unknown>;

/** Describes `tables` as drizzle-kit does. */
export async function toSnapshot(database: MigrationsOf, tables = tablesOf[database]()): Promise<Snapshot> {
  const { tables: described } = await describe(database, tables);
  return described;
}

/** The SQL that changes the tables of one snapshot into those of another, without schema names. */
export async function toStatements(
  database: MigrationsOf,
  before: Snapshot,
  after: Snapshot,
): Promise<string[]> {
  const empty = await describe(database, {});
  const [from, to] = [before, after].map((tables) => ({ ...empty, tables }));
  if (!isSqlite(database))
    return (await generateMigration(from as DrizzleSnapshotJSON, to as DrizzleSnapshotJSON)).map(
      (statement) => statement.replaceAll('"public".', ''),
    );
  const statements = await generateSQLiteMigration(
    from as DrizzleSQLiteSnapshotJSON,
    to as DrizzleSQLiteSnapshotJSON,
  );
  return statements.map((statement) =>
    statement.startsWith('CREATE TABLE') ? statement.replace(/\);?\s*$/, ') STRICT;') : statement,
  );
}

/** The file with the snapshot of the newest migration. */
export function snapshotFile(database: MigrationsOf): URL {
  return new URL(`./snapshots/${database}.json`, import.meta.url);
}

export function readSnapshot(database: MigrationsOf): Snapshot {
  return JSON.parse(readFileSync(snapshotFile(database), 'utf8'));
}

async function describe(database: MigrationsOf, tables: Record<string, unknown>) {
  return isSqlite(database) ? generateSQLiteDrizzleJson(tables) : generateDrizzleJson(tables);
}

function isSqlite(database: MigrationsOf): boolean {
  return database.endsWith('sqlite');
}
