import { accessSync, constants, statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { instanceStatusSchema } from '../../contract/instance.ts';
import { DatabaseRefused, refusedVersion } from '../database-refused.ts';
import { damaged } from './database-refused.ts';

/** Marks a file as Berth's ("Brth"), so that another program's database is never written to. */
export const APPLICATION_ID = 0x42727468;
/** Marks a copy that `berth backup` made ("Brtb"), until something is started from it. */
export const BACKUP_ID = 0x42727462;
/** SQLite takes a file that is shorter than its header for a new one, and would write over it. */
const HEADER_BYTES = 100;

/**
 * Whether there is a file to open.
 *
 * @throws {DatabaseRefused} if what is there cannot be a database.
 */
export function isThere(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0)
      throw new DatabaseRefused(
        `There is no database ${path}, but its journal ${path}-wal: put the file back, or restore it from a backup and move the journal away.`,
      );
    return false;
  }
  if (!found.isFile())
    throw new DatabaseRefused(
      `${path} is a ${found.isDirectory() ? 'folder' : 'device'} and no database: give --database a file.`,
    );
  if (found.size === 0)
    throw new DatabaseRefused(
      `The database ${path} is an empty file: restore it from a backup, or delete it to start with nothing.`,
    );
  if (found.size < HEADER_BYTES) throw damaged(path, 'the file is cut short');
  // SQLite opens what it may not write, and fails at the first write.
  accessSync(path, constants.R_OK | constants.W_OK);
  return true;
}

/**
 * Only reads: that the file is Berth's, of a version that this program knows, and whole.
 *
 * @throws {DatabaseRefused | SqliteError}
 */
export function checkDatabase(db: Database.Database, path: string, newest: number): void {
  const version = checkIdentity(db, path, newest);
  const damage = findDamage(db, path, version);
  if (damage !== undefined) throw damaged(path, damage);
}

/** That the file is Berth's, and of a version that this program knows, which it returns. @throws {DatabaseRefused} */
export function checkIdentity(db: Database.Database, path: string, newest: number): number {
  const id = pragmaNumber(db, 'application_id');
  if (id !== APPLICATION_ID && id !== BACKUP_ID)
    throw new DatabaseRefused(`${path} is a database of another program: give --database another file.`);
  const version = pragmaNumber(db, 'user_version');
  if (version > newest) throw refusedVersion(path, version, newest);
  return version;
}

/**
 * SQLite's own check of the structure, and of what it does not know: the end of the file, and what a row must hold.
 * It takes some milliseconds for each 1000 rows.
 */
export function findDamage(db: Database.Database, path: string, version: number): string | undefined {
  if (version === 0) return 'its version number is missing';
  if (statSync(path).size % pragmaNumber(db, 'page_size') !== 0) return 'the file is cut short';
  const structure = db.pragma('integrity_check(1)', { simple: true });
  if (structure !== 'ok') return String(structure);
  const unreadable = db.prepare(UNREADABLE).pluck().get();
  return unreadable === undefined ? undefined : `the row of instance ${unreadable} cannot be read`;
}

const specTypes = {
  ...{ instanceType: ['text'], image: ['text'], onStop: ['text'], sshKeys: ['array'] },
  ...{ vcpus: ['integer'], memoryGb: ['integer', 'real'], storageGb: ['integer', 'real'] },
  ...{ onlineWithinMs: ['integer', 'real'], resumable: ['true', 'false'] },
};
const endpointTypes = { publicIp: ['text'], sshPort: ['integer'], sshUsername: ['text'] };

/** What integrity_check cannot know: SQLite keeps any text, and a flipped bit leaves it text. */
const UNREADABLE = `
  SELECT id FROM instances
  WHERE status NOT IN (${instanceStatusSchema.options.map((status) => `'${status}'`).join()})
    OR CASE WHEN json_valid(spec) THEN ${lacksAny('spec', specTypes)} ELSE TRUE END
    OR endpoint IS NOT NULL
      AND CASE WHEN json_valid(endpoint) THEN ${lacksAny('endpoint', endpointTypes)} ELSE TRUE END
  LIMIT 1`;

function lacksAny(column: string, types: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(types)
    .map(
      ([key, allowed]) => `coalesce(json_type(${column}, '$.${key}'), '') NOT IN ('${allowed.join("','")}')`,
    )
    .join(' OR ');
}

export function pragmaNumber(db: Database.Database, name: string): number {
  return Number(db.pragma(name, { simple: true }));
}
