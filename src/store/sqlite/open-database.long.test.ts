import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from './open-database.ts';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-open-'));
  path = join(folder, 'new', 'berth.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('migrations', () => {
  const first = {
    version: 1,
    sql: 'CREATE TABLE instances (id, status, spec, endpoint); CREATE TABLE runs (n);',
  };
  const second = { version: 2, sql: 'INSERT INTO runs VALUES (2);' };

  /** Opens the file and writes a row in four processes at the same moment. */
  async function openInProcesses(): Promise<void> {
    const module = new URL('./open-database.ts', import.meta.url).href;
    const at = Date.now() + 1_500;
    const script = `
      const { openDatabase } = await import(${JSON.stringify(module)});
      while (Date.now() < ${at});
      const db = openDatabase(${JSON.stringify(path)}, { migrations: ${JSON.stringify([first, second])} });
      db.exec('INSERT INTO runs VALUES (0)');
      db.close();`;
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    await Promise.all(Array.from({ length: 4 }, run));
  }

  function runs(): unknown[] {
    const db = new Database(path);
    const found = db.prepare('SELECT n FROM runs').pluck().all();
    db.close();
    return found;
  }

  it('run once when 4 processes make the same database at once', async () => {
    await openInProcesses();
    expect(runs()).toEqual([2, 0, 0, 0, 0]);
    expect(readdirSync(join(folder, 'new'))).toEqual(['berth.db']);
  });

  it('run once when 4 processes bring the same database to a new version at once', async () => {
    openDatabase(path, { migrations: [first] }).close();
    await openInProcesses();
    expect(runs()).toEqual([2, 0, 0, 0, 0]);
  });
});
