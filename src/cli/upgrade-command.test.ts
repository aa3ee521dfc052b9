import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { readMigrations } from '../store/migrations.ts';
import { openDatabase } from '../store/sqlite/open-database.ts';
import { takeServeLock } from '../store/sqlite/serve-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-upgrade-'));
const file = join(folder, 'berth.db');
const all = readMigrations('sqlite');
const newest = all.at(-1)?.version ?? 0;
const OLD = newest - 2;
beforeEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  openDatabase(file, { migrations: all.filter(({ version }) => version <= OLD) }).close();
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(['upgrade', ...args, '--database', `sqlite:${file}`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

const changes = all.filter(({ version }) => version > OLD).map(({ version, name }) => ({ version, name }));

it('--dry-run tries it and changes nothing, also while a server runs', async () => {
  const before = readFileSync(file);
  const release = takeServeLock(file);
  const said = await run('--dry-run');
  release();
  expect(said).toMatch(`The database is at version ${OLD}, this program at ${newest}.`);
  expect(said).toContain(`  ${newest}  ${changes.at(-1)?.name}\n`);
  expect(JSON.parse(await run('--dry-run', '--json'))).toEqual({
    dry_run: true,
    version: OLD,
    newest,
    changes,
  });
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(folder).filter((name) => name.includes('upgrade'))).toEqual([]);
});

it('changes the tables once, and not while a server runs', async () => {
  const release = takeServeLock(file);
  const refused = await runMain(['upgrade', '--database', `sqlite:${file}`]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^berth: Another /)]);
  release();
  expect(await run()).toMatch(`The database was at version ${OLD}, and is at ${newest} now:`);
  expect(await run()).toBe(
    `The database is at version ${newest}, the version of this program: there is nothing to do.\n`,
  );
});
