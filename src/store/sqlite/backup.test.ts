import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DatabaseRefused } from '../database-refused.ts';
import { backUpDatabase } from './backup.ts';
import { BACKUP_ID } from './database-format.ts';
import { openDatabase } from './open-database.ts';

const TAKEN_AT = Date.UTC(2026, 10, 21);
let folder: string;
let path: string;
let target: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-backup-'));
  path = join(folder, 'berth.db');
  target = join(folder, 'copy.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

function read<T>(file: string, look: (db: Database.Database) => T): T {
  const db = new Database(file, { readonly: true });
  try {
    return look(db);
  } finally {
    db.close();
  }
}

const addAccount = (db: Database.Database, name: string) =>
  db
    .prepare('INSERT INTO accounts (id, name, password_hash, created_at) VALUES (?, ?, NULL, 0)')
    .run(name, name);
const accountsIn = (file: string) => read(file, (db) => db.prepare('SELECT id FROM accounts').pluck().all());
const markIn = (file: string) => read(file, (db) => db.prepare('SELECT name, at FROM marks').all());

describe('a backup', () => {
  it('has all commits, is marked as a backup, and is one file that only its owner may read', async () => {
    const db = openDatabase(path);
    addAccount(db, 'before');
    db.exec('BEGIN IMMEDIATE');
    addAccount(db, 'uncommitted');
    const { bytes } = await backUpDatabase(path, target, TAKEN_AT);
    db.exec('COMMIT');
    db.close();
    expect(accountsIn(target)).toEqual(['before']);
    expect(markIn(target)).toEqual([{ name: 'restored_from', at: TAKEN_AT }]);
    expect(read(target, (copy) => copy.pragma('application_id', { simple: true }))).toBe(BACKUP_ID);
    expect(statSync(target)).toMatchObject({ size: bytes });
    expect(statSync(target).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).filter((name) => name.startsWith('copy'))).toEqual(['copy.db']);
    expect(markIn(path)).toEqual([]);
  });

  it('is a consistent snapshot while another thread keeps writing', async () => {
    openDatabase(path).close();
    const script = `
      const { parentPort } = require('node:worker_threads');
      const Database = require(${JSON.stringify(join(process.cwd(), 'node_modules/better-sqlite3'))});
      const db = new Database(${JSON.stringify(path)});
      db.pragma('busy_timeout = 5000');
      let n = 0;
      let isOver = false;
      parentPort.on('message', () => { isOver = true; });
      const both = db.transaction(() => {
        db.prepare("INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('a' || ?, 'a' || ? || hex(zeroblob(2000)), NULL, 0)").run(n, n);
        db.prepare("INSERT INTO api_keys VALUES ('k' || ?, 'a' || ?, randomblob(32), 'p', 'l', NULL, 0, NULL, NULL, NULL)").run(n, n);
        n++;
      });
      const write = () => {
        for (let i = 0; i < 20; i++) both();
        if (n === 20) parentPort.postMessage('writing');
        if (!isOver) return setImmediate(write);
        db.close();
        parentPort.postMessage(n);
        parentPort.close();
      };
      write();`;
    const worker = new Worker(script, { eval: true });
    const next = () => new Promise<unknown>((resolve) => worker.once('message', resolve));
    await next();
    await backUpDatabase(path, target, TAKEN_AT);
    const last = next();
    worker.postMessage('end');
    const written = await last;
    const [accounts, keys] = read(target, (db) =>
      ['accounts', 'api_keys'].map((table) => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()),
    );
    expect(accounts).toBe(keys);
    expect(accounts).toBeGreaterThanOrEqual(20);
    expect(accounts).toBeLessThan(Number(written));
    expect(read(target, (db) => db.pragma('integrity_check', { simple: true }))).toBe('ok');
  });

  it('of a database of an earlier version is of that version, and the database stays as it is', async () => {
    const older = -1;
    const db = openDatabase(path);
    db.pragma(`user_version = ${older}`);
    db.close();
    await backUpDatabase(path, target, TAKEN_AT);
    for (const file of [path, target])
      expect(read(file, (copy) => copy.pragma('user_version', { simple: true }))).toBe(older);
  });
});

describe('a backup is refused and nothing is left', () => {
  async function expectRefused(sentence: RegExp, to = target): Promise<void> {
    const before = readdirSync(folder);
    const error = await backUpDatabase(path, to, TAKEN_AT).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DatabaseRefused);
    expect(String(error)).toMatch(sentence);
    expect(readdirSync(folder)).toEqual(before);
  }

  it('if a file of that name exists, even a dangling link', async () => {
    openDatabase(path).close();
    writeFileSync(target, 'precious');
    await expectRefused(/The file .*copy\.db already exists: give the backup another name/);
    expect(readFileSync(target, 'utf8')).toBe('precious');
    rmSync(target);
    symlinkSync(join(folder, 'nowhere'), target);
    await expectRefused(/The file .*copy\.db already exists/);
    await expectRefused(/The file .*berth\.db already exists/, path);
  });

  it('where it cannot be written', async () => {
    openDatabase(path).close();
    await expectRefused(
      /cannot be written \(there is no such folder\): choose/,
      join(folder, 'no', 'copy.db'),
    );
    await expectRefused(/cannot be written \(a file is where a folder .*\): choose/, join(path, 'copy.db'));
  });

  it('of a database that is damaged', async () => {
    const db = openDatabase(path);
    for (let n = 0; n < 500; n++) addAccount(db, `account-${n}`);
    db.close();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4096 * 3, 4096 * 3 + 64);
    writeFileSync(path, bytes);
    await expectRefused(/The database .*berth\.db is damaged \(.+\)/);
  });

  it('of a foreign file, a missing file, or a backup', async () => {
    await expectRefused(/There is no database/);
    const db = new Database(path);
    db.exec('CREATE TABLE guests (name)');
    db.close();
    await expectRefused(/is a database of another program/);
    rmSync(path);
    openDatabase(path).close();
    await backUpDatabase(path, target, TAKEN_AT);
    copyFileSync(target, path);
    await expectRefused(/is a backup that was never started from/, join(folder, 'another.db'));
  });
});

describe('a database that was restored from a backup', () => {
  beforeEach(async () => {
    const db = openDatabase(path);
    addAccount(db, 'kept');
    await backUpDatabase(path, target, TAKEN_AT);
    addAccount(db, 'later');
    db.close();
  });

  it('is a normal database from its first start on, and records when the backup was taken', () => {
    copyFileSync(target, path);
    for (const _start of ['first', 'second']) {
      const db = openDatabase(path);
      expect(db.pragma('application_id', { simple: true })).toBe(0x42727468);
      db.close();
    }
    expect(accountsIn(path)).toEqual(['kept']);
    expect(markIn(path)).toEqual([{ name: 'restored_from', at: TAKEN_AT }]);
  });

  it.each(['-wal', '-journal'])(
    'is refused while the %s of the previous database is next to it',
    (suffix) => {
      copyFileSync(target, path);
      writeFileSync(`${path}${suffix}`, 'pages of another database');
      const before = readFileSync(path);
      expect(() => openDatabase(path)).toThrow(DatabaseRefused);
      expect(() => openDatabase(path)).toThrow(
        new RegExp(
          `${suffix} next to it belongs to the previous database: move \\S+${suffix} away and start`,
        ),
      );
      expect(readFileSync(path).equals(before)).toBe(true);
      rmSync(`${path}${suffix}`);
      writeFileSync(`${path}${suffix}`, '');
      openDatabase(path).close();
      expect(accountsIn(path)).toEqual(['kept']);
    },
  );

  it('is left as it is when the start is refused before anything may be written', () => {
    copyFileSync(target, path);
    chmodSync(path, 0o600);
    const refuse = (): never => {
      throw new DatabaseRefused('locked');
    };
    expect(() => openDatabase(path, { beforeWriting: refuse })).toThrow('locked');
    expect(readFileSync(path).equals(readFileSync(target))).toBe(true);
  });
});
