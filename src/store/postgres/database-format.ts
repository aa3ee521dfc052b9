import type { Command } from '../database-refused.ts';
import type { MigrationsOf } from '../migrations.ts';

/** The database of one of Berth's programs. */
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
 * The tables as a process found or made them when it opened the database. A transaction that
 * reads the version blocks every migration until it ends: a migration locks the table.
 */
export interface KnownSchema {
  versionTable: DatabaseFormat['versionTable'];
  version: number;
}

/** The program that the table belongs to; undefined: none of Berth's. */
export function ownerOf(table: unknown): Command | undefined {
  return [orchestratorFormat, marketplaceFormat].find(({ versionTable }) => versionTable === table)?.command;
}
