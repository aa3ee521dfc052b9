import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('./migrations/', import.meta.url);

export interface Migration {
  version: number;
  sql: string;
}

/** The prefix of a database's migration files. */
export type MigrationsOf = 'sqlite' | 'postgres' | 'marketplace-sqlite' | 'marketplace-postgres';

/** The migrations of one database in order; `sqlite-0003-….sql` brings a SQLite file to version 3. */
export function readMigrations(database: MigrationsOf): Migration[] {
  const name = new RegExp(`^${database}-(\\d{4})-.*\\.sql$`);
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const version = name.exec(file)?.[1];
      return version === undefined
        ? []
        : [{ version: Number(version), sql: readFileSync(new URL(file, folder), 'utf8') }];
    });
}
