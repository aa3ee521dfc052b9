import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-listings-'));
const database = `sqlite:${join(folder, 'berth.db')}`;

beforeAll(async () => {
  await openSqliteStore(join(folder, 'berth.db')).close();
  await run('accounts', 'create', 'ann');
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain([...args, '--database', database]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

it('lists accounts as JSON', async () => {
  expect(JSON.parse(await run('accounts', 'list', '--json'))).toEqual([
    { id: expect.any(String), name: 'ann', has_password: false, created_at: expect.stringMatching(TIME) },
  ]);
  expect(await run('accounts', 'list')).toMatch(/^ID +NAME +PASSWORD +CREATED\n.* ann +no +\d{4}-/);
});

it('lists keys as JSON, and makes one that ends in 30 minutes', async () => {
  const begun = Date.now();
  const { id } = JSON.parse(await run('keys', 'create', '--account', 'ann', '--expires', '30m', '--json'));
  const [key] = JSON.parse(await run('keys', 'list', '--json'));
  expect(key).toEqual({
    id,
    account: 'ann',
    key: expect.stringContaining('…'),
    label: null,
    state: 'valid',
    created_at: expect.stringMatching(TIME),
    expires_at: expect.any(String),
    last_used_at: null,
  });
  const endsInMs = Date.parse(key.expires_at) - begun;
  expect(endsInMs).toBeGreaterThanOrEqual(30 * 60_000);
  expect(endsInMs).toBeLessThan(31 * 60_000);
});

it('tells of losses as JSON', async () => {
  expect(JSON.parse(await run('losses', '--json'))).toEqual({
    lost: 0,
    allowed: expect.any(Number),
    window_s: expect.any(Number),
    accepted_until: null,
    held: [],
    platform_down_since: null,
    volumes_doubted_since: null,
  });
});

it('checks the database for damage', async () => {
  expect(JSON.parse(await run('check-database', '--json'))).toEqual({ ok: true, bytes: expect.any(Number) });
  expect(await run('check-database')).toMatch(/^OK, no damage found: \d+ bytes\.\n$/);
});
