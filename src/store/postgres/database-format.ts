import type { Command } from '../database-refused.ts';
import type { MigrationsOf } from '../migrations.ts';

/** The database format of one of Berth's programs. */
export interface DatabaseFormat {
  command: Command;
  migrations: MigrationsOf;
  /** The table whose only row holds the schema's version. */
  versionTable: 'berth_schema' | 'berth_marketplace_schema';
}

export const orchestratorFormat: DatabaseFormat = {
  command: 'berth serve',
  migrations: 'postgres',
  versionTable: 'berth_schema',
};

export const marketplaceFormat: DatabaseFormat = {
  command: 'berth marketplace',
  migrations: 'marketplace-postgres',
  versionTable: 'berth_marketplace_schema',
};

/**
 * The schema that a process found or created when it opened the database. A transaction that reads the version blocks
 * every migration until it ends, because a migration locks the table.
 */
export interface KnownSchema {
  versionTable: DatabaseFormat['versionTable'];
  version: number;
}

/** The program that the version table belongs to. Undefined: not one of Berth's. */
export function ownerOf(table: unknown): Command | undefined {
  return [orchestratorFormat, marketplaceFormat].find(({ versionTable }) => versionTable === table)?.command;
}
