import { closeSync, fsyncSync, openSync, readSync, realpathSync, statSync, writeSync } from 'node:fs';
import { DatabaseRefused } from '../database-refused.ts';
import { APPLICATION_ID, BACKUP_ID } from './database-format.ts';

/** The offset of the application id in SQLite's file header: four bytes, big-endian. */
const OFFSET = 68;

/**
 * Whether a file is a backup from which no server was started yet. Reads the bytes, because SQLite would apply a
 * journal next to it.
 */
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
 * Refuses a backup with a journal next to it. The journal belongs to the database that the backup replaces, and SQLite
 * would write its pages into the backup.
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
    `The database ${path} was restored from a backup, but ${journal} next to it belongs to the previous database: move ${there} away and start again.`,
  );
}

/**
 * Turns a backup into an ordinary database. Its mark `restored_from` still records that it was one. A single write of
 * four bytes within one page is atomic without a journal. No connection may be open.
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
