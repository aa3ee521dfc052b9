import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('./migrations/', import.meta.url);

export interface Migration {
  version: number;
  /** A short description. */
  name?: string;
  sql: string;
}

/** The prefix of a database's migration files. */
export type MigrationsOf = 'sqlite' | 'postgres' | 'marketplace-sqlite' | 'marketplace-postgres';

/** The file of the build with an empty database, to which the migrations have been applied. It is compressed by gzip. */
export function emptyDatabaseFile(database: MigrationsOf): URL {
  return new URL(`${database}-empty.db.gz`, folder);
}

/** Reads the migrations of one database in order. `sqlite-0003-….sql` brings a SQLite file to version 3. */
export function readMigrations(database: MigrationsOf): Migration[] {
  const pattern = new RegExp(`^${database}-(\\d{4})-(.*)\\.sql$`);
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const [, version, words = ''] = pattern.exec(file) ?? [];
      if (version === undefined) return [];
      const sql = readFileSync(new URL(file, folder), 'utf8');
      return [{ version: Number(version), name: words.replaceAll('-', ' '), sql }];
    });
}
