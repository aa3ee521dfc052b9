import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { account, claim, dueWork, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { type Store, StoreUnavailable } from '../../orchestrator/model/store.ts';
import { openSqliteStore } from './store.ts';

let folder: string;
let path: string;
let store: Store;
let other: ChildProcess | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-busy-'));
  path = join(folder, 'berth.db');
  store = openSqliteStore(path);
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.instances.insert(instance('before'));
    await tx.work.put({ ...dueWork, resourceId: 'before' });
  });
});
afterEach(async () => {
  other?.kill('SIGKILL');
  await store.close();
  rmSync(folder, { recursive: true });
});

/** Lets another process take the write lock. `release` ends it. */
async function lockElsewhere(): Promise<{ release: () => Promise<void> }> {
  const script = `
    const Database = require(${JSON.stringify(join(process.cwd(), 'node_modules/better-sqlite3'))});
    const db = new Database(${JSON.stringify(path)});
    db.exec("BEGIN EXCLUSIVE; UPDATE accounts SET name = 'half-written'");
    process.stdout.write('locked');
    process.stdin.resume();`;
  const holder = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  other = holder;
  await once(holder.stdout, 'data');
  return {
    release: async () => {
      holder.kill('SIGKILL');
      await once(holder, 'close');
    },
  };
}

it('while another process holds the write lock, writes are unavailable and reads work; then all work continues [write-lock-held]', async () => {
  const { release } = await lockElsewhere();
  await expect(store.transact((tx) => tx.instances.insert(instance('refused')))).rejects.toThrow(
    StoreUnavailable,
  );
  expect(await store.read.instances.byId('before')).toEqual(instance('before'));
  expect(await store.read.credentials.accountByName(account.name)).toMatchObject(account);
  await release();
  await store.transact((tx) => tx.instances.insert(instance('after')));
  const found = ['before', 'refused', 'after'].map((id) => store.read.instances.byId(id));
  expect((await Promise.all(found)).map((row) => row?.id)).toEqual(['before', undefined, 'after']);
  expect(await store.claimWork(claim)).toMatchObject([{ resourceId: 'before', attempt: 1 }]);
});
