import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../test/support/time/until.ts';
import { createSeededRandom } from '../../drivers/kit/seeded-random.ts';
import { type Store, StoreUnavailable } from '../../orchestrator/model/store.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { openDatabase, openReader } from './open-database.ts';
import { openSqliteStore } from './store.ts';

const SEEDS = 75;
const INSTANCES = 60;
const SPEC = JSON.stringify({
  instanceType: 'DEDICATED',
  vcpus: 4,
  memoryGb: 16,
  storageGb: 100,
  image: 'ubuntu-24.04',
  ...{
    sshKeys: [`ssh-ed25519 ${'A'.repeat(68)}`],
    onStop: 'release',
    resumable: true,
    onlineWithinMs: 600_000,
  },
});

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-damage-'));
  path = join(folder, 'berth.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

function addInstance(db: Database.Database, number: number): void {
  const id = `inst-${String(number).padStart(32, '0')}`;
  db.prepare(
    "INSERT INTO instances VALUES (?, 'a', ?, NULL, 'o', 'r', 'ONLINE', ?, NULL, NULL, 0, 0, NULL, ?, 0, 1, NULL, 'default', NULL, NULL)",
  ).run(id, `berth-${id}`, SPEC, number);
  db.prepare("INSERT INTO claims VALUES (?, 'o', 'r')").run(id);
}

function fill(db: Database.Database): void {
  db.exec("INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('a', 'a', NULL, 0)");
  for (let number = 0; number < INSTANCES; number++) addInstance(db, number);
}

/** The owner and the state of every row. */
function essence(db: Database.Database): unknown {
  return [
    db.prepare('SELECT id, account_id, owner_ref, status FROM instances ORDER BY id').all(),
    db.prepare('SELECT instance_id FROM claims ORDER BY instance_id').all(),
  ];
}

it('flipped bits are refused in one sentence, or leave every row with its owner and its state [database-bits-flipped]', () => {
  const db = openDatabase(path);
  fill(db);
  const before = essence(db);
  db.close();
  const bytes = readFileSync(path);
  let refused = 0;
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = createSeededRandom(`flip-${seed}`);
    const damaged = Buffer.from(bytes);
    for (let flips = 1 + Math.floor(random.next() * 4); flips > 0; flips--) {
      const at = Math.floor(random.next() * damaged.length);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << Math.floor(random.next() * 8));
    }
    writeFileSync(path, damaged);
    try {
      openDatabase(path).close();
      const reader = openReader(path);
      expect(essence(reader), `seed ${seed}`).toEqual(before);
      reader.close();
    } catch (error) {
      if (!(error instanceof DatabaseRefused)) throw error;
      expect(error.message).toMatch(/^(The database )?\/.*\.db (is|cannot be opened) [^\n]+$/);
      expect(readFileSync(path).equals(damaged), `seed ${seed}`).toBe(true);
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(SEEDS / 10);
});

describe('a journal that a crash left', () => {
  /** Returns the files of a killed process: everything since `fill` is only in the journal. */
  function crash(): string {
    const db = openDatabase(path);
    fill(db);
    db.pragma('wal_checkpoint(TRUNCATE)');
    for (let number = INSTANCES; number < 2 * INSTANCES; number++) addInstance(db, number);
    const crashed = join(folder, 'crashed.db');
    for (const suffix of ['', '-wal']) copyFileSync(`${path}${suffix}`, `${crashed}${suffix}`);
    db.close();
    return crashed;
  }
  const count = (file: string): number => {
    const db = openDatabase(file);
    try {
      expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
      return Number(db.prepare('SELECT count(*) FROM instances').pluck().get());
    } finally {
      db.close();
    }
  };

  it('is applied', () => {
    expect(count(crash())).toBe(2 * INSTANCES);
  });

  it('that is cut, damaged or missing leaves all commits up to an earlier moment, never half of one', () => {
    const crashed = crash();
    const [main, journal] = [readFileSync(crashed), readFileSync(`${crashed}-wal`)];
    for (let seed = 0; seed < 20; seed++) {
      const random = createSeededRandom(`journal-${seed}`);
      const at = Math.floor(random.next() * journal.length);
      const changed = Buffer.from(journal);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      writeFileSync(crashed, main);
      writeFileSync(`${crashed}-wal`, seed % 2 === 0 ? changed : journal.subarray(0, at));
      const found = count(crashed);
      expect(found).toBeGreaterThanOrEqual(INSTANCES);
      expect(found).toBeLessThanOrEqual(2 * INSTANCES);
    }
    writeFileSync(crashed, main);
    rmSync(`${crashed}-wal`, { force: true });
    expect(count(crashed)).toBe(INSTANCES);
  });

  it('without its database is refused: no new database is created next to it [database-wal-orphaned]', () => {
    const crashed = crash();
    rmSync(crashed);
    const before = readdirSync(folder);
    expect(() => openDatabase(crashed)).toThrow(DatabaseRefused);
    expect(() => openDatabase(crashed)).toThrow(
      /There is no database .*, but its journal .*-wal: put the file/,
    );
    expect(readdirSync(folder)).toEqual(before);
  });
});

const isTrue = (): boolean => true;
const isFalse = (): boolean => false;

describe('a file that vanishes while it is in use [database-file-vanishes]', () => {
  const write = (store: Store, id: string) =>
    store.transact((tx) => tx.credentials.insertAccount({ id, name: id, passwordHash: null, createdAt: 0 }));
  const claim = {
    platform: 'default',
    owner: 'me',
    now: 0,
    leaseUntil: 1,
    limit: 1,
    resourceKind: 'instance',
  } as const;
  const seen = { watch: { everyMs: 5 } };
  const noticed = (store: Store) =>
    until('it is noticed', () => store.claimWork(claim).then(isFalse, isTrue));

  it.each(['', '-wal'])(
    '(berth.db%s) makes writes unavailable until it is back; reads go on',
    async (suffix) => {
      const store = openSqliteStore(path, seen);
      await write(store, 'before');
      renameSync(`${path}${suffix}`, `${path}.away`);
      await noticed(store);
      await expect(write(store, 'lost')).rejects.toThrow(StoreUnavailable);
      await expect(store.claimWork(claim)).rejects.toThrow(
        /was moved, deleted or replaced while it is in use/,
      );
      expect(await store.read.credentials.accountById('before')).not.toBeNull();
      renameSync(`${path}.away`, `${path}${suffix}`);
      await until('it is back', () => store.claimWork(claim).then(isTrue, isFalse));
      await write(store, 'after');
      await store.close();
      const reader = openSqliteStore(path);
      const accounts = await reader.read.credentials.listAccounts();
      expect(accounts.map(({ id }) => id).sort()).toEqual(['after', 'before']);
      await reader.close();
    },
  );

  it('makes writes unavailable while its path cannot be read', async () => {
    const store = openSqliteStore(path, seen);
    renameSync(path, `${path}.away`);
    symlinkSync(path, path);
    await noticed(store);
    rmSync(path);
    renameSync(`${path}.away`, path);
    await until('it is back', () => store.claimWork(claim).then(isTrue, isFalse));
    await store.close();
  });

  it('is saved when the process ends, if its journal was deleted', async () => {
    const store = openSqliteStore(path, seen);
    await write(store, 'before');
    rmSync(`${path}-wal`);
    await noticed(store);
    await expect(write(store, 'lost')).rejects.toThrow(StoreUnavailable);
    await store.close();
    const reader = openSqliteStore(path);
    expect(await reader.read.credentials.accountById('before')).not.toBeNull();
    await reader.close();
  });
});
