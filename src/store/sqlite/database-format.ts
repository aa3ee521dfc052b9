import type { Command } from '../database-refused.ts';
import type { MigrationsOf } from '../migrations.ts';

/** Marks a file as the orchestrator's ("Brth"), so that another program's database is never written to. */
export const APPLICATION_ID = 0x42727468;
/** Marks a copy that `berth backup` made ("Brtb"), until something is started from it. */
export const BACKUP_ID = 0x42727462;
/** Marks a file as the marketplace's ("Brtm"). */
export const MARKETPLACE_ID = 0x4272746d;

/** What tells the files of one of Berth's programs from those of the other. */
export interface DatabaseFormat {
  command: Command;
  applicationId: number;
  /** Whether a file may be a backup that `berth backup` made. */
  hasBackups: boolean;
  migrations: MigrationsOf;
  /** Finds one row that cannot be read, and says which: what SQLite's own check cannot know. */
  unreadable: string;
}

/** Whose a file with this application id is; undefined: it is not Berth's. */
export function ownerOf(applicationId: number): Command | undefined {
  if (applicationId === MARKETPLACE_ID) return 'berth marketplace';
  return applicationId === APPLICATION_ID || applicationId === BACKUP_ID ? 'berth serve' : undefined;
}

/** The SQL condition that a JSON column's text has not, for each key, one of the types that `json_type` may say. */
export function lacksAny(column: string, types: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(types)
    .map(
      ([key, allowed]) => `coalesce(json_type(${column}, '$.${key}'), '') NOT IN ('${allowed.join("','")}')`,
    )
    .join(' OR ');
}
