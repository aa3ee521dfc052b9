import { closeSync, fsyncSync, openSync, readSync, realpathSync, statSync, writeSync } from 'node:fs';
import { DatabaseRefused } from '../database-refused.ts';
import { APPLICATION_ID, BACKUP_ID } from './database-format.ts';

/** Where SQLite's file header has the application id, four bytes, the highest first. */
const OFFSET = 68;

/** Whether a file is a backup that nothing has been started from yet. SQLite is not asked: it would apply what lies beside it. */
export function isBackup(path: string): boolean {
  const bytes = Buffer.alloc(4);
  const descriptor = openSync(path, 'r');
  try {
    readSync(descriptor, bytes, 0, bytes.length, OFFSET);
  } finally {
    closeSync(descriptor);
  }
  return bytes.readInt32BE() === BACKUP_ID;
}

/**
 * A journal beside a backup is of the database that it replaces, and SQLite would write its pages into the copy.
 *
 * @throws {DatabaseRefused}
 */
export function assertAlone(path: string): void {
  const real = realpathSync(path);
  const sizeOf = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.size;
  const journal = ['-wal', '-journal'].map((suffix) => `${real}${suffix}`).find((file) => sizeOf(file));
  if (journal === undefined) return;
  const files = ['-wal', '-shm', '-journal'].map((suffix) => `${real}${suffix}`);
  const there = files.filter((file) => sizeOf(file) !== undefined).join(' and ');
  throw new DatabaseRefused(
    `The database ${path} was restored from a backup, and ${journal} beside it is of the database that was there before: move ${there} away and start again.`,
  );
}

/**
 * From now on the file is a database like any other; that it was a backup, its mark `restored_from` says. One write
 * of four bytes that no page lies between: it happens or it does not, and no journal could be taken for another's.
 * No connection may be open.
 */
export function makeDatabase(path: string): void {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(APPLICATION_ID);
  const descriptor = openSync(path, 'r+');
  try {
    writeSync(descriptor, bytes, 0, bytes.length, OFFSET);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
