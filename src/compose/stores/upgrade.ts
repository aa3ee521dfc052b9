import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { type Migration, type MigrationsOf, readMigrations } from '../../store/migrations.ts';
import { assertNotServed, takeServeLock } from '../../store/sqlite/serve-lock.ts';
import { tryMigrations } from '../../store/sqlite/try-migrations.ts';
import { openIn, type Stores } from './stores.ts';

/** The changes of this program's first start to a database. */
export interface Upgrade {
  /** The versions of the database and of this program. */
  version: number;
  newest: number;
  /** The schema changes between them, in order. */
  changes: Pick<Migration, 'version' | 'name'>[];
}

/** Tries the upgrade and discards it: on a copy of a SQLite file, or in a PostgreSQL transaction. @throws {Fatal} */
export async function tryUpgrade(
  { format }: Pick<Stores<unknown>, 'format'>,
  database: string,
): Promise<Upgrade> {
  if (!isPostgres(database)) return toUpgrade(format, await tryMigrations(sqlitePath(database), format));
  const postgres = await import('../../store/postgres/open-database.ts');
  const { marketplaceFormat, orchestratorFormat } = await import('../../store/postgres/database-format.ts');
  const own = format.command === 'berth serve' ? orchestratorFormat : marketplaceFormat;
  return toUpgrade(own, await postgres.tryMigrations(database, own));
}

/** Upgrades a database that no server uses to this program's version. @throws {Fatal} */
export async function upgrade<Store extends { close(): Promise<void> }>(
  stores: Stores<Store>,
  database: string,
): Promise<Upgrade> {
  const { command } = stores.format;
  const file = isPostgres(database) ? undefined : sqlitePath(database);
  if (file !== undefined) assertNotServed(file, command);
  const before = await tryUpgrade(stores, database);
  const release = file === undefined ? () => undefined : takeServeLock(file, command);
  try {
    if (before.changes.length > 0) await (await openIn(stores, database, {})).close();
    return before;
  } finally {
    release();
  }
}

function toUpgrade({ migrations }: { migrations: MigrationsOf }, version: number): Upgrade {
  const all = readMigrations(migrations);
  const changes = all.filter((migration) => migration.version > version);
  return {
    version,
    newest: all.at(-1)?.version ?? 0,
    changes: changes.map(({ version: to, name = '' }) => ({ version: to, name })),
  };
}
