import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { account, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { backUpDatabase } from './backup.ts';
import { checkDatabaseFile } from './copy-database.ts';
import { openReader } from './open-database.ts';
import type { OpenOptions } from './open-options.ts';
import { orchestratorFormat } from './orchestrator-format.ts';
import { openSqliteStore } from './store.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-close-'));
  path = join(folder, 'berth.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Opens and closes the file as a server does. Returns whether it was checked. */
async function serve(file = path, options: OpenOptions = {}): Promise<boolean> {
  let isChecked = false;
  const onChecked = (): void => {
    isChecked = true;
  };
  await openSqliteStore(file, { onChecked, ...options }).close();
  return isChecked;
}

async function addAccount(name: string, options: OpenOptions = {}): Promise<void> {
  const store = openSqliteStore(path, options);
  await store.transact((tx) =>
    tx.credentials.insertAccount({ id: name, name, passwordHash: null, createdAt: 0 }),
  );
  await store.close();
}

/** Leaves the files of a process that was killed while it served. */
async function crash(name = 'late'): Promise<void> {
  const store = openSqliteStore(path);
  await store.transact((tx) =>
    tx.credentials.insertAccount({ id: name, name, passwordHash: null, createdAt: 0 }),
  );
  const files = ['-wal', '.state'].map(
    (suffix) => [`${path}${suffix}`, readFileSync(`${path}${suffix}`)] as const,
  );
  const before = readFileSync(path);
  await store.close();
  writeFileSync(path, before);
  for (const [file, bytes] of files) writeFileSync(file, bytes);
}

const damage = (file: string): void => writeFileSync(file, readFileSync(file).fill(0xa5, 24_576, 24_676));

it('a file is not checked again after a clean close, its own or that of a command', async () => {
  expect(await serve()).toBe(false);
  expect(await serve()).toBe(false);
  await addAccount('ann', { checksAfterCrash: false });
  expect(await serve()).toBe(false);
});

it('after a crash it is checked, and damage is refused', async () => {
  await serve();
  await crash();
  expect(await serve()).toBe(true);
  expect(await serve()).toBe(false);
  await crash('later');
  damage(path);
  await expect(serve()).rejects.toThrow(/is damaged \([^\n]+\): restore it from a backup/);
});

it('a command leaves the check after a crash to the server, and does not mark the file as checked', async () => {
  await serve();
  await crash();
  expect(await serve(path, { checksAfterCrash: false })).toBe(false);
  expect(await serve()).toBe(true);
});

it('a command that ends while the server has the file open does not mark it as closed', async () => {
  const server = openSqliteStore(path);
  await addAccount('ann', { checksAfterCrash: false });
  expect(readFileSync(`${path}.state`, 'utf8')).not.toContain('closed');
  await server.close();
  expect(readFileSync(`${path}.state`, 'utf8')).toBe('closed');
});

it.each<[string, () => void]>([
  ['without its mark', () => rmSync(`${path}.state`)],
  ['with a mark that has no meaning', () => writeFileSync(`${path}.state`, 'close')],
  ['that another program left open', () => writeFileSync(`${path}-wal`, '')],
])('a file %s is checked, once', async (_what, change) => {
  await serve();
  change();
  expect(await serve()).toBe(true);
  expect(await serve()).toBe(false);
});

it('a backup is checked, whatever the mark of the file before it', async () => {
  await serve();
  await backUpDatabase(path, `${path}.backup`, 1);
  copyFileSync(`${path}.backup`, path);
  expect(await serve()).toBe(true);
  expect(await serve()).toBe(false);
});

it('a file that is cut short is refused, however its mark reads', async () => {
  await serve();
  writeFileSync(path, readFileSync(path).subarray(0, -1));
  await expect(serve(path, { checksAfterCrash: false })).rejects.toThrow(/the file is cut short/);
});

it('a check of a file finds damage, also while a server has it open, and leaves it as it is', async () => {
  const server = openSqliteStore(path);
  expect(checkDatabaseFile(path, orchestratorFormat)).toBeGreaterThan(0);
  await server.close();
  expect(await serve()).toBe(false);
  damage(path);
  const before = readFileSync(path);
  expect(() => checkDatabaseFile(path, orchestratorFormat)).toThrow(/is damaged \([^\n]+\)/);
  expect(readFileSync(path).equals(before)).toBe(true);
  rmSync(path);
  expect(() => checkDatabaseFile(path, orchestratorFormat)).toThrow(DatabaseRefused);
  expect(existsSync(path)).toBe(false);
});

it('a file that its server found damaged is checked by the next start, and refused', async () => {
  await serve();
  const store = openSqliteStore(path);
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    for (let n = 0; n < 100; n++) await tx.instances.insert(instance(`i${n}`));
  });
  await store.close();
  const damaged = openSqliteStore(path);
  const db = openReader(path);
  const root = Number(
    db.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'instances'`).pluck().get(),
  );
  db.close();
  const bytes = readFileSync(path);
  const begin = (root - 1) * bytes.readUInt16BE(16);
  writeFileSync(path, bytes.fill(0xa5, begin, begin + 64));
  await expect(damaged.read.instances.list({})).rejects.toThrow(/SQLITE_CORRUPT/);
  await damaged.close();
  expect(() => openSqliteStore(path)).toThrow(/is damaged/);
});

it('a file overwritten in place next to the previous journal is refused', async () => {
  const live = (n: number) => instance(`i${n}`, { createdAt: n });
  const destroy = (store: Store, n: number) =>
    store.transact((tx) => tx.instances.update({ ...live(n), status: 'DESTROYED' }));
  const first = openSqliteStore(path);
  await first.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    for (let n = 0; n < 400; n++) await tx.instances.insert(live(n));
  });
  await first.close();
  const copy = readFileSync(path);
  const second = openSqliteStore(path);
  for (let n = 0; n < 30; n++) await destroy(second, n);
  await second.close();
  const killed = openSqliteStore(path);
  await destroy(killed, 35);
  const files = ['-wal', '.state'].map(
    (suffix) => [`${path}${suffix}`, readFileSync(`${path}${suffix}`)] as const,
  );
  await killed.close();
  for (const [file, bytes] of files) writeFileSync(file, bytes);
  writeFileSync(path, copy);
  expect(() => openSqliteStore(path)).toThrow(/is damaged \(row \d+ missing from index/);
});

it('a file whose mark cannot be read is checked at each start', async () => {
  await serve();
  rmSync(`${path}.state`);
  mkdirSync(`${path}.state`);
  expect(await serve()).toBe(true);
  expect(await serve(path, { checksAfterCrash: false })).toBe(true);
});
