import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SchemaChanged } from '../database-refused.ts';
import { EmbeddedDatabase } from './embedded.ts';
import { orchestratorFormat } from './orchestrator-format.ts';

let folder: string;
let database: EmbeddedDatabase;
let endTurns: (() => void)[];
let events: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-embedded-'));
  endTurns = [];
  events = [];
  const nextTurn = () => new Promise<void>((resolve) => endTurns.push(resolve));
  database = new EmbeddedDatabase(join(folder, 'berth.db'), { nextTurn }, orchestratorFormat);
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true });
});

const ran = () => new Promise((resolve) => setImmediate(resolve));
const marks = () => database.writer.prepare('SELECT name FROM marks ORDER BY name').pluck().all();
/** Reads through another connection. */
const durable = () => database.reader.prepare('SELECT name FROM marks ORDER BY name').pluck().all();
const insert = (name: string) =>
  database.writer.prepare('INSERT INTO marks (name, at) VALUES (?, 1)').run(name);

/** Runs a transaction that writes a mark, and records its outcome in `events`. */
function write(name: string, then = (): void => undefined): Promise<void> {
  const body = async () => {
    insert(name);
    then();
  };
  return database
    .transact(body, () => void events.push(`${name} committed`))
    .then(
      () => void events.push(`${name} resolved`),
      (error: Error) => void events.push(`${name} failed: ${error.message}`),
    );
}

const fail = (message: string) => () => {
  throw new Error(message);
};

describe('transactions of one turn', () => {
  it('are committed together, and none resolves before that [commit-together]', async () => {
    const writes = [write('a'), write('b')];
    await ran();
    const late = write('c');
    await ran();
    expect([marks(), durable(), events, endTurns.length]).toEqual([['a', 'b', 'c'], [], [], 1]);
    endTurns[0]?.();
    await Promise.all([...writes, late]);
    expect(durable()).toEqual(['a', 'b', 'c']);
    expect(events).toEqual([
      ...['a committed', 'b committed', 'c committed'],
      ...['a resolved', 'b resolved', 'c resolved'],
    ]);
    const next = write('d');
    await ran();
    expect([durable().length, endTurns.length]).toEqual([3, 2]);
    endTurns[1]?.();
    await next;
    expect(durable()).toContain('d');
  });

  it('are rolled back one by one: the others continue, and an error is returned once the data it read is durable [commit-apart]', async () => {
    const writes = [write('a'), write('b', fail('no')), write('c')];
    await ran();
    expect([marks(), events]).toEqual([['a', 'c'], []]);
    endTurns[0]?.();
    await Promise.all(writes);
    expect(durable()).toEqual(['a', 'c']);
    expect(events.toSorted()).toEqual([
      ...['a committed', 'a resolved', 'b failed: no', 'c committed', 'c resolved'],
    ]);
  });

  it('are rolled back at once where no other transaction is waiting', async () => {
    await write('a', fail('no'));
    expect([events, endTurns, database.writer.inTransaction]).toEqual([['a failed: no'], [], false]);
  });

  it('all fail with the error of the commit, even one that had failed before', async () => {
    const orphan = "INSERT INTO claims (instance_id, offer_id, region) VALUES ('none', 'o', 'r')";
    const writes = [
      write('a', () => void database.writer.exec('PRAGMA defer_foreign_keys = ON')),
      write('b', fail('no')),
      write('c', () => void database.writer.exec(orphan)),
    ];
    await ran();
    endTurns[0]?.();
    await Promise.all(writes);
    const why = 'failed: FOREIGN KEY constraint failed';
    expect(events.toSorted()).toEqual([`a ${why}`, `b ${why}`, `c ${why}`]);
    expect([durable(), database.writer.inTransaction]).toEqual([[], false]);
    const next = write('d');
    await ran();
    endTurns[1]?.();
    await next;
    expect(durable()).toEqual(['d']);
  });

  it('all fail where SQLite has rolled all of them back', async () => {
    const writes = [write('a'), write('b', () => void database.writer.exec('ROLLBACK')), write('c')];
    await ran();
    for (const end of endTurns) end();
    await Promise.all(writes);
    expect(events.filter((event) => event.startsWith('a '))).toEqual([expect.stringContaining('a failed')]);
    expect(events.at(-1)).toBe('c resolved');
    expect(durable()).toEqual(['c']);
  });

  it('all fail where one cannot be rolled back alone: nothing of it may be committed', async () => {
    const loseSavepoint = (): void => {
      database.writer.exec('RELEASE joined');
      throw new Error('no');
    };
    const writes = [write('a'), write('b', loseSavepoint)];
    await Promise.all(writes);
    expect(events.toSorted()).toEqual(['a failed: no', 'b failed: no']);
    const next = write('c');
    await ran();
    for (const end of endTurns) end();
    await next;
    expect(durable()).toEqual(['c']);
  });

  it('all fail, and none hangs, where both the commit and the rollback fail', async () => {
    const writes = [write('a'), write('b')];
    await ran();
    const { writer } = database;
    const exec = vi.spyOn(writer, 'exec').mockImplementation(() => {
      throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR');
    });
    endTurns[0]?.();
    await Promise.all(writes);
    exec.mockRestore();
    expect(events.map((event) => event.split(':')[0])).toEqual(['a failed', 'b failed']);
    writer.exec('ROLLBACK');
    expect(durable()).toEqual([]);
  });

  it('are durable when the database is closed before the turn ends', async () => {
    const path = database.writer.name;
    const writes = [write('a'), write('b')];
    await database.close();
    await Promise.all(writes);
    expect(events).toContain('b resolved');
    const db = new Database(path);
    expect(db.prepare('SELECT count(*) FROM marks').pluck().get()).toBe(2);
    db.close();
  });
});

it('a process of the old version writes nothing once a later one has changed the tables, and says why [old-process-writes-nothing]', async () => {
  const file = new Database(join(folder, 'berth.db'));
  const version = Number(file.pragma('user_version', { simple: true }));
  file.pragma(`user_version = ${version + 1}`);
  const refused = database.transact(async () => void insert('a'));
  await expect(refused).rejects.toThrow(/another Berth has migrated the database/);
  await expect(database.proveWrites()).rejects.toThrow(SchemaChanged);
  file.pragma(`user_version = ${version}`);
  file.close();
  const written = write('b');
  await ran();
  endTurns.shift()?.();
  await written;
  expect(durable()).toEqual(['b']);
});
