import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { runCommand } from '../../test/support/processes/run-main.ts';
import { orchestratorStores } from '../compose/stores/orchestrator.ts';
import { readMigrations } from '../store/migrations.ts';
import { openDatabase } from '../store/sqlite/open-database.ts';
import { takeServeLock } from '../store/sqlite/serve-lock.ts';
import { loadFor } from './orchestrator-database.ts';
import { upgradeCommand } from './upgrade-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-upgrade-'));
const file = join(folder, 'berth.db');
const known = readMigrations('sqlite');
const OLD = known.length;
const later = [
  { version: OLD + 1, name: 'a later table', sql: 'CREATE TABLE later (a INTEGER) STRICT;' },
  { version: OLD + 2, name: 'a row in it', sql: 'INSERT INTO later VALUES (1);' },
];
const newest = OLD + 2;
beforeEach(() => {
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  openDatabase(file).close();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command of a later Berth, with two more migrations. */
async function run(...args: string[]): Promise<string> {
  const command = upgradeCommand(
    'berth',
    { ...orchestratorStores, migrations: [...known, ...later] },
    loadFor,
  );
  const flags = [...args, '--database', `sqlite:${file}`];
  const { stdout } = await runCommand(() => command.parseAsync(flags, { from: 'user' }));
  return stdout;
}

it('--dry-run tries it and changes nothing, also while a server runs', async () => {
  const before = readFileSync(file);
  const release = takeServeLock(file);
  const said = await run('--dry-run');
  release();
  expect(said).toMatch(`The database is at version ${OLD}, this program at ${newest}.`);
  expect(said).toContain(`  ${newest}  a row in it\n`);
  expect(JSON.parse(await run('--dry-run', '--json'))).toEqual({
    dry_run: true,
    version: OLD,
    newest,
    changes: later.map(({ version, name }) => ({ version, name })),
  });
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(folder).filter((name) => name.includes('upgrade'))).toEqual([]);
});

it('changes the tables once, and not while a server runs', async () => {
  const release = takeServeLock(file);
  await expect(run()).rejects.toThrow(/^Another /);
  release();
  expect(await run()).toMatch(`The database was at version ${OLD}, and is at ${newest} now:`);
  expect(await run()).toBe(
    `The database is at version ${newest}, the version of this program: there is nothing to do.\n`,
  );
});
