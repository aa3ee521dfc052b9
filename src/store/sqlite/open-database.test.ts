import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Reader } from '../../orchestrator/model/store.ts';
import { DatabaseRefused } from '../database-refused.ts';
import { readerOn } from '../queries/repositories.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { sqlite } from '../schema/sqlite.ts';
import { toConnection } from './connection.ts';
import { openDatabase, openReader } from './open-database.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-open-'));
  path = join(folder, 'new', 'berth.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

function durabilityOf(db: Database.Database): unknown {
  const read = (pragma: string): unknown => db.pragma(pragma, { simple: true });
  return { journal: read('journal_mode'), synchronous: read('synchronous'), keys: read('foreign_keys') };
}

describe('durability', () => {
  const durable = { journal: 'wal', synchronous: 2, keys: 1 };

  it('is WAL with synchronous FULL on the first open, on the second, and for the reader [synchronous-full]', () => {
    for (const _open of ['first', 'second']) {
      const db = openDatabase(path);
      const reader = openReader(path);
      expect(durabilityOf(db)).toEqual(durable);
      expect(durabilityOf(reader)).toEqual(durable);
      reader.close();
      db.close();
    }
  });

  it('is set by us: SQLite opens a WAL file with less [synchronous-set-by-us]', () => {
    openDatabase(path).close();
    const plain = new Database(path);
    expect(plain.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(plain.pragma('synchronous', { simple: true })).not.toBe(2);
    plain.close();
  });

  it('gives readers no way to write', () => {
    const db = openDatabase(path);
    const reader = openReader(path);
    expect(() => reader.exec('DELETE FROM work')).toThrow('readonly');
    reader.close();
    db.close();
  });
});

it('counts the instances of each status in an index, without reading a row', () => {
  const db = openDatabase(path);
  const plan = db
    .prepare(
      "EXPLAIN QUERY PLAN SELECT status, count(*) FROM instances WHERE status <> 'DESTROYED' GROUP BY status",
    )
    .all() as { detail: string }[];
  expect(plan.map(({ detail }) => detail).join()).toContain('COVERING INDEX instances_live_by_platform');
  db.close();
});

it.each<[string, (reader: Reader) => Promise<unknown>]>([
  ['all live instances', ({ instances }) => instances.list({})],
  ['those of an account', ({ instances }) => instances.list({ accountId: 'a' })],
  ['their numbers', ({ instances }) => instances.countByStatus()],
  ['the number of volumes', ({ volumes }) => volumes.countByPlatform()],
])('reads no tombstone for %s', async (_what, read) => {
  const db = openDatabase(path);
  const prepare = db.prepare.bind(db);
  const statements: string[] = [];
  db.prepare = ((source: string) => {
    statements.push(source);
    return prepare(source);
  }) as typeof db.prepare;
  await read(readerOn(toConnection(db, orchestratorTables(sqlite)), (error) => error));
  expect(statements).toHaveLength(1);
  const plan = prepare(`EXPLAIN QUERY PLAN ${statements[0]?.replaceAll('?', "'a'")}`).all() as {
    detail: string;
  }[];
  expect(plan.map(({ detail }) => detail).join()).toMatch(
    /USING (COVERING )?INDEX (instances|volumes)_live_/,
  );
  db.close();
});

describe('migrations', () => {
  const first = {
    version: 1,
    sql: 'CREATE TABLE instances (id, status, spec, endpoint); CREATE TABLE runs (n);',
  };
  const second = { version: 2, sql: 'INSERT INTO runs VALUES (2);' };

  it('are left to the server: a command refuses a database of an earlier version', () => {
    openDatabase(path, { migrations: [first] }).close();
    const command = () => openDatabase(path, { migrations: [first, second], mayMigrate: false });
    expect(command).toThrow(
      /older \(version 1\) than this program \(version 2\): start its `berth serve` once/,
    );
    expect(runs()).toEqual([]);
    openDatabase(path, { migrations: [first, second] }).close();
    command().close();
    expect(runs()).toEqual([2]);
  });

  function runs(): unknown[] {
    const db = new Database(path);
    const found = db.prepare('SELECT n FROM runs').pluck().all();
    db.close();
    return found;
  }

  it('continue from the version that another process has meanwhile reached', () => {
    const meanwhile = (): void => {
      const other = openDatabase(path, { migrations: [first] });
      other.exec('INSERT INTO runs VALUES (7)');
      other.close();
    };
    openDatabase(path, { migrations: [first, second], beforeWriting: meanwhile }).close();
    expect(runs()).toEqual([7, 2]);
  });

  it('leave the database as it was when one of them fails', () => {
    openDatabase(path, { migrations: [first] }).close();
    const broken = { version: 2, sql: 'INSERT INTO runs VALUES (2); INSERT INTO nowhere VALUES (1);' };
    expect(() => openDatabase(path, { migrations: [first, broken] })).toThrow('nowhere');
    expect(runs()).toEqual([]);
    openDatabase(path, { migrations: [first, second] }).close();
    expect(runs()).toEqual([2]);
  });

  it('leave no file behind when the first ones fail', () => {
    const broken = { version: 1, sql: 'CREATE TABLE a (b); INSERT INTO nowhere VALUES (1);' };
    expect(() => openDatabase(path, { migrations: [broken] })).toThrow('nowhere');
    expect(readdirSync(join(folder, 'new'))).toEqual([]);
  });
});

describe('a file that is refused is left as it is', () => {
  function bytesOf(dir: string): Record<string, string> {
    return Object.fromEntries(
      readdirSync(dir).map((name) => [name, readFileSync(join(dir, name)).toString('base64')]),
    );
  }

  function withDatabase(change: (db: Database.Database) => void): void {
    const db = openDatabase(path);
    change(db);
    db.close();
  }

  function insertInstance(db: Database.Database): void {
    const spec = {
      instanceType: 'DEDICATED',
      vcpus: 4,
      memoryGb: 16,
      storageGb: 0.5,
      image: 'os',
      sshKeys: [],
      onStop: 'release',
      resumable: true,
      onlineWithinMs: 1,
    };
    const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'user' };
    db.exec("INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('a', 'a', NULL, 0)");
    db.prepare(
      "INSERT INTO instances VALUES ('inst-1', 'a', 'r', NULL, 'o', 'r', 'ONLINE', ?, ?, NULL, 0, 0, NULL, 0, 0, 1, NULL, 'default', NULL, NULL)",
    ).run(JSON.stringify(spec), JSON.stringify(endpoint));
  }

  function withBytes(change: (bytes: Buffer) => Buffer): void {
    openDatabase(path).close();
    writeFileSync(path, change(readFileSync(path)));
  }

  const cases: [string, RegExp, () => void][] = [
    [
      'newer than this program',
      /is newer \(version 1000\) than this program .*: run the Berth that wrote it/,
      () => withDatabase((db) => db.pragma('user_version = 1000')),
    ],
    [
      'of another program',
      /is a database of another program: give --database another file/,
      () => withDatabase((db) => db.pragma('application_id = 7')),
    ],
    ['without its version', /is damaged/, () => withDatabase((db) => db.pragma('user_version = 0'))],
    [
      'with a row that cannot be read',
      /is damaged \(the row of instance inst-1 cannot be read\)/,
      () =>
        withDatabase((db) => {
          db.exec("INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('a', 'a', NULL, 0)");
          db.exec(
            "INSERT INTO instances VALUES ('inst-1', 'a', 'r', NULL, 'o', 'r', 'ONLINE', '{\"image', NULL, NULL, 0, 0, NULL, 0, 0, 1, NULL, 'default', NULL, NULL)",
          );
        }),
    ],
    ...(
      [
        ['of an unknown state', "status = 'OOLINE'"],
        ['without a part of its spec', "spec = replace(spec, 'vcpus', 'vcqus')"],
        ['without a part of its endpoint', "endpoint = replace(endpoint, 'sshPort', 'sshQort')"],
      ] as const
    ).map(([what, change]): [string, RegExp, () => void] => [
      `with a row ${what}`,
      /is damaged \(the row of instance inst-1 cannot be read\)/,
      () =>
        withDatabase((db) => {
          insertInstance(db);
          db.exec(`UPDATE instances SET ${change}`);
        }),
    ]),
    ['cut to one byte', /is damaged/, () => withBytes((bytes) => bytes.subarray(0, 1))],
    ['cut in its header', /is damaged/, () => withBytes((bytes) => bytes.subarray(0, 50))],
    ['cut by its last byte', /is damaged/, () => withBytes((bytes) => bytes.subarray(0, -1))],
    ['cut by half', /is damaged/, () => withBytes((bytes) => bytes.subarray(0, bytes.length / 2))],
    ['of zeros', /is damaged|another program/, () => withBytes((bytes) => bytes.fill(0))],
    ['emptied', /is an empty file: restore it/, () => withBytes((bytes) => bytes.subarray(0, 0))],
  ];

  it.each(cases)('%s', (_what, sentence, prepare) => {
    prepare();
    const before = bytesOf(join(folder, 'new'));
    const open = () => openDatabase(path);
    expect(open).toThrow(DatabaseRefused);
    expect(open).toThrow(sentence);
    expect(bytesOf(join(folder, 'new'))).toEqual(before);
  });

  it.each([0, 16, 28, 44, 96, 100, 4096, 8192, 12_288])(
    'damaged from byte %i on [database-damaged]',
    (at) => {
      withBytes((bytes) => {
        for (let index = at; index < at + 16; index++) bytes[index] = 0xff ^ (bytes[index] ?? 0);
        return bytes;
      });
      const before = bytesOf(join(folder, 'new'));
      expect(() => openDatabase(path)).toThrow(/is damaged \([^\n]+\): restore it from a backup/);
      expect(bytesOf(join(folder, 'new'))).toEqual(before);
    },
  );

  it('a sound file is opened, so the cases above are refused for their own reason', () => {
    withDatabase(insertInstance);
    copyFileSync(path, `${path}.copy`);
    expect(() => openDatabase(`${path}.copy`).close()).not.toThrow();
  });

  it('asks before it writes, and writes nothing if declined', () => {
    const refuse = (): never => {
      throw new DatabaseRefused('locked');
    };
    expect(() => openDatabase(path, { beforeWriting: refuse })).toThrow('locked');
    expect(readdirSync(join(folder, 'new'))).toEqual([]);
    openDatabase(path, {
      migrations: [{ version: 1, sql: 'CREATE TABLE instances (id, status, spec, endpoint)' }],
    }).close();
    const before = bytesOf(join(folder, 'new'));
    const more = [
      { version: 1, sql: '' },
      { version: 2, sql: 'CREATE TABLE late (a)' },
    ];
    expect(() => openDatabase(path, { migrations: more, beforeWriting: refuse })).toThrow('locked');
    expect(bytesOf(join(folder, 'new'))).toEqual(before);
  });
});
