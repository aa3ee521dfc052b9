import {
  chownSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ORDINARY_USER } from '../../../test/support/processes/ordinary-user.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { backUpDatabase } from './backup.ts';
import { openDatabase } from './open-database.ts';
import { restoreDatabase } from './restore.ts';
import { takeServeLock } from './serve-lock.ts';
import { openSqliteStore } from './store.ts';

const TAKEN_AT = Date.UTC(2026, 10, 21);
const BY = { actor: 'ann', at: TAKEN_AT + 1 };
let folder: string;
let path: string;
let backup: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-restore-'));
  path = join(folder, 'berth.db');
  backup = join(folder, 'copy.db');
  const db = openDatabase(path);
  addAccount(db, 'before');
  await backUpDatabase(path, backup, TAKEN_AT);
  addAccount(db, 'since');
  db.close();
});
afterEach(() => rmSync(folder, { recursive: true }));

function addAccount(db: Database.Database, name: string): void {
  db.prepare('INSERT INTO accounts (id, name, password_hash, created_at) VALUES (?, ?, NULL, 0)').run(
    name,
    name,
  );
}

/** Reads the database as the next start does. */
function read(file: string): { accounts: unknown[]; marks: unknown[] } {
  const db = openDatabase(file);
  try {
    return {
      accounts: db.prepare('SELECT id FROM accounts ORDER BY id').pluck().all(),
      marks: db.prepare('SELECT name, at FROM marks').all(),
    };
  } finally {
    db.close();
  }
}

const restored = { accounts: ['before'], marks: [{ name: 'restored_from', at: TAKEN_AT }] };

describe('a restore', () => {
  it('puts the backup in the place of the database, marked, and keeps both', () => {
    const { takenAt, before } = restoreDatabase(backup, path, 'then', BY);
    expect([takenAt, before]).toEqual([TAKEN_AT, `${path}.before-restore-then`]);
    expect(read(path)).toEqual(restored);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const db = openDatabase(path);
    const rows = db.prepare('SELECT at, actor, source, action, subject, detail, outcome FROM audit').all();
    db.close();
    const detail = JSON.stringify({ taken_at: new Date(TAKEN_AT).toISOString() });
    const action = { action: 'database.restore', subject: backup, detail, outcome: 'done' };
    expect(rows).toEqual([{ ...BY, source: 'cli', ...action }]);
    expect(read(String(before))).toEqual({ accounts: ['before', 'since'], marks: [] });
    expect(restoreDatabase(backup, path, 'again', BY).takenAt).toBe(TAKEN_AT);
  });

  it('keeps data that is only in the journal of a killed database, and leaves no journal next to the restored one', () => {
    const db = openDatabase(path);
    addAccount(db, 'last');
    const killed = ['', '-wal', '-shm'].map((suffix) => [suffix, readFileSync(`${path}${suffix}`)] as const);
    db.close();
    for (const [suffix, bytes] of killed) writeFileSync(`${path}${suffix}`, bytes);
    const { before } = restoreDatabase(backup, path, 'then', BY);
    expect(read(path)).toEqual(restored);
    expect(read(String(before)).accounts).toEqual(['before', 'last', 'since']);
  });

  it('replaces a damaged database, and moves its journal with it', () => {
    writeFileSync(path, Buffer.alloc(8192, 'x'));
    writeFileSync(`${path}-wal`, 'a journal');
    restoreDatabase(backup, path, 'then', BY);
    expect(read(path)).toEqual(restored);
    expect(readFileSync(`${path}.before-restore-then-wal`, 'utf8')).toBe('a journal');
  });

  it('makes the database where there is none', () => {
    rmSync(path);
    expect(restoreDatabase(backup, path, 'then', BY).before).toBeNull();
    expect(read(path)).toEqual(restored);
  });

  it('by root leaves all to the owner of what was there, or of the folder [restore-owner]', async () => {
    // Without root's rights everything is the user's own.
    const SERVICE = process.getuid?.() || ORDINARY_USER;
    const owners = () => readdirSync(folder).map((file) => [file, statSync(join(folder, file)).uid]);
    chownSync(folder, SERVICE, -1);
    for (const file of readdirSync(folder)) chownSync(join(folder, file), SERVICE, -1);
    for (const [round, had] of [true, false].entries()) {
      if (!had) for (const file of readdirSync(folder)) if (file !== 'copy.db') rmSync(join(folder, file));
      const release = takeServeLock(path);
      restoreDatabase(backup, path, `then-${round}`, BY);
      release();
      await openSqliteStore(path).close();
      const strangers = owners().filter(([, uid]) => uid !== SERVICE);
      expect([strangers, owners().map(([file]) => file)]).toEqual([
        [],
        expect.arrayContaining(['berth.db', 'berth.db.lock', 'berth.db.state']),
      ]);
    }
  });

  it('marks a file that something else copied as taken when it was last written', () => {
    const copied = join(folder, 'litestream.db');
    copyFileSync(path, copied);
    utimesSync(copied, TAKEN_AT / 1000, TAKEN_AT / 1000);
    expect(restoreDatabase(copied, path, 'then', BY).takenAt).toBe(TAKEN_AT);
    expect(read(path)).toEqual({ ...restored, accounts: ['before', 'since'] });
  });

  it.each<[string, (file: string) => void, RegExp]>([
    ['is not there', (file) => rmSync(file), /^There is no backup /],
    ['is not a database', (file) => writeFileSync(file, 'no database, whatever its name says'), /copy\.db/],
    [
      'was cut',
      (file) => writeFileSync(file, readFileSync(file).subarray(0, 8192)),
      /^The backup .*copy\.db is damaged \(.+\): take another one; the database is as it was\.$/,
    ],
    [
      'is empty',
      (file) => writeFileSync(file, ''),
      /^The backup .*copy\.db is an empty file: take another one;/,
    ],
    [
      'has a journal beside it',
      (file) => writeFileSync(`${file}-wal`, 'a journal'),
      /is not a complete backup/,
    ],
    [
      'is newer than this program',
      (file) => {
        const db = new Database(file);
        db.pragma('user_version = 9999');
        db.close();
      },
      /is newer \(version 9999\)/,
    ],
  ])('changes nothing where the backup %s', (_what, spoil, sentence) => {
    spoil(backup);
    const files = readdirSync(folder);
    const bytes = readFileSync(path);
    expect(() => restoreDatabase(backup, path, 'then', BY)).toThrow(DatabaseRefused);
    expect(() => restoreDatabase(backup, path, 'then', BY)).toThrow(sentence);
    expect(readdirSync(folder)).toEqual(files);
    expect(readFileSync(path)).toEqual(bytes);
  });
});
