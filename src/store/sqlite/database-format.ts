import type { Command } from '../database-refused.ts';
import type { MigrationsOf } from '../migrations.ts';

/** Marks a file as the orchestrator's ("Brth"), so that another program's database is never written. */
export const APPLICATION_ID = 0x42727468;
/** Marks a copy made by `berth backup` ("Brtb"), until a server is started from it. */
export const BACKUP_ID = 0x42727462;
/** Marks a file as the marketplace's ("Brtm"). */
export const MARKETPLACE_ID = 0x4272746d;

/** The file format of one of Berth's programs. */
export interface DatabaseFormat {
  command: Command;
  applicationId: number;
  /** Whether a backup is marked, so that the first start from it compares it with the platforms. */
  hasBackups: boolean;
  migrations: MigrationsOf;
  /** SQL that finds rows with unreadable contents, which SQLite's integrity check does not detect. */
  unreadable: string;
}

/** The program of a file's application id. Undefined: it is not Berth's. */
export function ownerOf(applicationId: number): Command | undefined {
  if (applicationId === MARKETPLACE_ID) return 'berth marketplace';
  return applicationId === APPLICATION_ID || applicationId === BACKUP_ID ? 'berth serve' : undefined;
}

/** The SQL condition that some key of a JSON column has none of its allowed types, as `json_type` names them. */
export function lacksAny(column: string, types: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(types)
    .map(
      ([key, allowed]) => `coalesce(json_type(${column}, '$.${key}'), '') NOT IN ('${allowed.join("','")}')`,
    )
    .join(' OR ');
}
