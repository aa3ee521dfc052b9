import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../orchestrator/model/store.ts';
import { openSqliteStore } from './store.ts';

let folder: string;
let path: string;
let store: Store;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-journal-'));
  path = join(folder, 'berth.db');
  store = openSqliteStore(path, { truncateJournalAfterMs: 20 });
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const SECRET = 'what-nobody-may-find';
const isIn = (file: string): boolean => readFileSync(file).includes(SECRET);
const journalBytes = (): number => statSync(`${path}-wal`).size;

async function until(isSo: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 10_000; !isSo() && performance.now() < deadline; )
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isSo()).toBe(true);
}

async function writeAndOverwrite(): Promise<void> {
  const account = { id: 'acct', passwordHash: null, createdAt: 1 };
  await store.transact((tx) => tx.credentials.insertAccount({ ...account, name: 'a' }));
  await store.transact((tx) => tx.credentials.setPasswordHash('acct', SECRET));
  expect(isIn(`${path}-wal`)).toBe(true);
  await store.transact((tx) => tx.credentials.setPasswordHash('acct', 'x'));
}

it('leaves no overwritten data in any file while the store is open', async () => {
  await writeAndOverwrite();
  await until(() => journalBytes() === 0);
  expect([isIn(path), isIn(`${path}-wal`)]).toEqual([false, false]);
});

it('waits for a reader in another program, without delaying other work', async () => {
  const other = new Database(path, { readonly: true });
  other.exec('BEGIN');
  other.prepare('SELECT count(*) FROM accounts').get();
  await writeAndOverwrite();
  const startedAt = performance.now();
  for (let turn = 0; turn < 10; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    await store.transact((tx) => tx.credentials.setPasswordHash('acct', `${turn}`));
  }
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect(isIn(`${path}-wal`)).toBe(true);
  other.close();
  await until(() => journalBytes() === 0);
  expect([isIn(path), isIn(`${path}-wal`)]).toEqual([false, false]);
});

it('the journal of a killed process is emptied at the next start', async () => {
  await writeAndOverwrite();
  const left = new Database(path);
  left.close();
  await store.close();
  store = openSqliteStore(path, { truncateJournalAfterMs: 20 });
  await until(() => journalBytes() === 0);
  expect([isIn(path), isIn(`${path}-wal`)]).toEqual([false, false]);
});
