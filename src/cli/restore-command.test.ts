import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { takeServeLock } from '../store/sqlite/serve-lock.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-restore-cli-'));
const file = join(folder, 'berth.db');
const backup = join(folder, 'backup.db');

beforeAll(() => openSqliteStore(file).close());
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain([...args, '--database', `sqlite:${file}`]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function sentenceOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain([...args, '--database', `sqlite:${file}`]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  return stderr;
}

const accounts = async (): Promise<string[]> =>
  JSON.parse(await run('accounts', 'list', '--json')).map(({ name }: { name: string }) => name);

it('restores a backup, lists what to check, and refuses while a server runs', async () => {
  await run('accounts', 'create', 'ann');
  await run('backup', backup);
  await run('accounts', 'create', 'bob');
  const release = takeServeLock(file);
  expect(await sentenceOf('restore', backup)).toMatch(/^berth: Another .*berth\.db/);
  release();
  expect(await accounts()).toEqual(['ann', 'bob']);
  const said = await run('restore', backup);
  expect(said).toMatch(/^The database is restored from \S+backup\.db, as of \d{4}-/);
  expect(said).toMatch(/The previous database is \S+\.before-restore-\S+: delete it/);
  expect(said).toContain('`berth keys ls`');
  const rows = JSON.parse(await run('audit', 'ls', '--json')) as { action: string; subject: string }[];
  const [last] = rows;
  expect(last).toMatchObject({ action: 'database.restore', source: 'cli', outcome: 'done', subject: backup });
  const before = /The previous database is (\S+):/.exec(said)?.[1] ?? '';
  const replaced = openSqliteStore(before);
  expect(await replaced.read.audit.page({ limit: 3 })).toMatchObject([
    { action: 'database.restore', outcome: 'refused', detail: { reason: expect.stringMatching('Another') } },
    { action: 'account.create', subject: 'bob' },
    { action: 'database.backup', subject: backup, outcome: 'done' },
  ]);
  await replaced.close();
});

it('rehearses a backup beside the database, and changes nothing', async () => {
  const [key] = JSON.parse(await run('keys', 'ls', '--json')) as { id: string }[];
  const copy = join(folder, 'rehearsed.db');
  await run('keys', 'create', '--account', 'ann');
  const before = JSON.parse(await run('keys', 'ls', '--json')) as { id: string }[];
  const made = before.find(({ id }) => id !== key?.id)?.id ?? '';
  await run('backup', copy);
  await run('keys', 'revoke', made, '--yes');
  const files = readdirSync(folder);
  const said = await run('restore', copy, '--rehearse');
  expect(said).toMatch(
    /rehearsed\.db can be restored: it was checked and opened in \d+ s, and the copy is removed/,
  );
  expect(said).toMatch(new RegExp(`would be valid again: ${made}\\.`));
  expect(readdirSync(folder)).toEqual(files);
  expect(JSON.parse(await run('restore', copy, '--rehearse', '--json'))).toMatchObject({
    backup: copy,
    revoked_since: [made],
    accounts: 1,
  });
  writeFileSync(copy, readFileSync(copy).subarray(0, 50_000));
  expect(await sentenceOf('restore', copy, '--rehearse')).toMatch(/The backup \S+rehearsed\.db is damaged/);
  expect(readdirSync(folder)).toEqual(files);
});

it('marks a database that other tools restored', async () => {
  const store = openSqliteStore(file);
  await store.transact((tx) => tx.marks.remove('restored_from'));
  await store.close();
  const marked = JSON.parse(
    await run('restore', '--in-place', '--taken-at', '2026-01-31T04:00:00Z', '--json'),
  );
  expect(marked).toEqual({ taken_at: '2026-01-31T04:00:00.000Z' });
  const again = openSqliteStore(file);
  expect(await again.read.marks.get('restored_from')).toBe(Date.UTC(2026, 0, 31, 4));
  await again.close();
});

it('says what is wrong with the command line', async () => {
  expect(await sentenceOf('restore')).toMatch('Give the backup, or --in-place');
  expect(await sentenceOf('restore', '--rehearse')).toMatch('Give the backup, or --in-place');
  expect(await sentenceOf('restore', backup, '--in-place')).toMatch('Give the backup, or --in-place');
  expect(await sentenceOf('restore', '--in-place', '--taken-at', '2999-01-01T00:00:00Z')).toMatch(
    '--taken-at 2999-01-01T00:00:00Z: that is in the future',
  );
  expect(await sentenceOf('restore', '--in-place', '--taken-at', 'yesterday')).toMatch(
    '--taken-at yesterday: give a time',
  );
});
