import { accessSync, constants, statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { DatabaseRefused, refusedOwner, refusedVersion } from '../database-refused.ts';
import { type DatabaseFormat, ownerOf } from './database-format.ts';
import { damaged } from './errors.ts';

/** SQLite treats a file shorter than its header as new, and would overwrite it. */
const HEADER_BYTES = 100;

/** Whether there is a file to open. @throws {DatabaseRefused} if it cannot be a database. */
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
      `${path} is a ${found.isDirectory() ? 'folder' : 'device'} and not a database: give --database a file.`,
    );
  if (found.size === 0)
    throw new DatabaseRefused(
      `The database ${path} is an empty file: restore it from a backup, or delete it to start with nothing.`,
    );
  if (found.size < HEADER_BYTES) throw damaged(path, 'the file is cut short');
  // SQLite opens a read-only file, and fails at the first write.
  accessSync(path, constants.R_OK | constants.W_OK);
  return true;
}

/**
 * Checks that the file belongs to this program, has a known version, and is undamaged. Only reads.
 * @throws {DatabaseRefused | SqliteError}
 */
export function checkDatabase(
  db: Database.Database,
  path: string,
  newest: number,
  format: DatabaseFormat,
  isTrusted: boolean,
): void {
  const version = checkIdentity(db, path, newest, format);
  const damage = findDamage(db, path, version, format, isTrusted);
  if (damage !== undefined) throw damaged(path, damage);
}

/** Checks that the file belongs to this program, and returns its version. @throws {DatabaseRefused} */
export function checkIdentity(
  db: Database.Database,
  path: string,
  newest: number,
  { command }: DatabaseFormat,
): number {
  const owner = ownerOf(pragmaNumber(db, 'application_id'));
  if (owner === undefined)
    throw new DatabaseRefused(`${path} is a database of another program: give --database another file.`);
  if (owner !== command) throw refusedOwner(path, owner, command);
  const version = pragmaNumber(db, 'user_version');
  if (version > newest) throw refusedVersion(path, version, newest, command);
  return version;
}

/**
 * Checks for damage. A missing version and a truncated file are always detected, which takes no time. A file that is not
 * trusted goes through SQLite's integrity check, and the contents of its rows are read, which that does not cover.
 */
export function findDamage(
  db: Database.Database,
  path: string,
  version: number,
  { unreadable }: DatabaseFormat,
  isTrusted = false,
): string | undefined {
  if (version === 0) return 'its version number is missing';
  if (statSync(path).size % pragmaNumber(db, 'page_size') !== 0) return 'the file is cut short';
  if (isTrusted) return undefined;
  const structure = db.pragma('integrity_check(1)', { simple: true });
  if (structure !== 'ok') return String(structure);
  const row = db.prepare(unreadable).pluck().get();
  return row === undefined ? undefined : `the row of ${row} cannot be read`;
}

export function pragmaNumber(db: Database.Database, name: string): number {
  return Number(db.pragma(name, { simple: true }));
}
