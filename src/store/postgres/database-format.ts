import type { Command } from '../database-refused.ts';
import type { MigrationsOf } from '../migrations.ts';

/** What tells the databases of one of Berth's programs from those of the other. */
export interface DatabaseFormat {
  command: Command;
  migrations: MigrationsOf;
  /** Holds the version of the schema in its only row. */
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

/** The program whose databases have that table; undefined: none of Berth's. */
export function ownerOf(table: unknown): Command | undefined {
  return [orchestratorFormat, marketplaceFormat].find(({ versionTable }) => versionTable === table)?.command;
}
