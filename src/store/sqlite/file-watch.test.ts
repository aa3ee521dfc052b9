import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { until } from '../../../test/support/time/until.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { FileWatch } from './file-watch.ts';
import { openSqliteStore } from './store.ts';

let folder: string;
let path: string;
let store: Store;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-journal-'));
  path = join(folder, 'berth.db');
  store = openSqliteStore(path, { watch: { everyMs: 5, truncateAfterMs: 20 } });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const SECRET = 'what-nobody-may-find';
const isIn = (file: string): boolean => readFileSync(file).includes(SECRET);
const journalBytes = (): number => statSync(`${path}-wal`).size;

async function writeAndOverwrite(): Promise<void> {
  const account = { id: 'acct', passwordHash: null, createdAt: 1 };
  await store.transact((tx) => tx.credentials.insertAccount({ ...account, name: 'a' }));
  await store.transact((tx) => tx.credentials.setPasswordHash('acct', SECRET));
  expect(isIn(`${path}-wal`)).toBe(true);
  await store.transact((tx) => tx.credentials.setPasswordHash('acct', 'x'));
}

it('leaves no overwritten data in any file while the store is open', async () => {
  await writeAndOverwrite();
  await until('the journal is empty', () => journalBytes() === 0);
  expect([isIn(path), isIn(`${path}-wal`)]).toEqual([false, false]);
});

it('waits for a reader in another program, without delaying other work', async () => {
  await store.close();
  const db = new Database(path, { timeout: 5_000 });
  const pragma = db.pragma.bind(db);
  const waitsMs: unknown[] = [];
  db.pragma = (source, options) => {
    if (source.startsWith('wal_checkpoint')) waitsMs.push(pragma('busy_timeout', { simple: true }));
    return pragma(source, options);
  };
  const watch = new FileWatch(path, db, async (truncate) => truncate(), { everyMs: 1, truncateAfterMs: 1 });
  const other = new Database(path, { readonly: true });
  other.exec('BEGIN');
  other.prepare('SELECT count(*) FROM accounts').get();
  db.exec("INSERT INTO accounts (id, name, created_at) VALUES ('acct', 'a', 1)");
  watch.written();
  await until('it has tried again', () => waitsMs.length > 2);
  expect(journalBytes()).toBeGreaterThan(0);
  other.close();
  await until('the journal is empty', () => journalBytes() === 0);
  expect([new Set(waitsMs), pragma('busy_timeout', { simple: true })]).toEqual([new Set([0]), 5_000]);
  watch.stop();
  db.close();
});

it('the journal of a killed process is emptied at the next start', async () => {
  await writeAndOverwrite();
  const left = new Database(path);
  left.close();
  await store.close();
  store = openSqliteStore(path, { watch: { everyMs: 5, truncateAfterMs: 20 } });
  await until('the journal is empty', () => journalBytes() === 0);
  expect([isIn(path), isIn(`${path}-wal`)]).toEqual([false, false]);
});
