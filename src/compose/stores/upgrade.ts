import { isPostgres, sqlitePath } from '../../config/server-schema.ts';
import { type Migration, readMigrations } from '../../store/migrations.ts';
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
  { format, migrations: given }: Pick<Stores<unknown>, 'format' | 'migrations'>,
  database: string,
): Promise<Upgrade> {
  if (!isPostgres(database)) {
    const migrations = given ?? readMigrations(format.migrations);
    return toUpgrade(migrations, await tryMigrations(sqlitePath(database), format, migrations));
  }
  const postgres = await import('../../store/postgres/open-database.ts');
  const { marketplaceFormat, orchestratorFormat } = await import('../../store/postgres/database-format.ts');
  const own = format.command === 'berth serve' ? orchestratorFormat : marketplaceFormat;
  const migrations = given ?? readMigrations(own.migrations);
  return toUpgrade(migrations, await postgres.tryMigrations(database, own, migrations));
}

/** Upgrades a database that no server uses to this program's version. @throws {Fatal} */
export async function upgrade<Store extends { close(): Promise<void> }>(
  stores: Stores<Store>,
  database: string,
): Promise<Upgrade> {
  const { format, migrations } = stores;
  const { command } = format;
  const file = isPostgres(database) ? undefined : sqlitePath(database);
  if (file !== undefined) assertNotServed(file, command);
  const before = await tryUpgrade(stores, database);
  const release = file === undefined ? () => undefined : takeServeLock(file, command);
  try {
    if (before.changes.length > 0)
      await (await openIn(stores, database, { ...(migrations && { migrations }) })).close();
    return before;
  } finally {
    release();
  }
}

function toUpgrade(migrations: readonly Migration[], version: number): Upgrade {
  const changes = migrations.filter((migration) => migration.version > version);
  return {
    version,
    newest: migrations.at(-1)?.version ?? 0,
    changes: changes.map(({ version: to, name = '' }) => ({ version: to, name })),
  };
}
