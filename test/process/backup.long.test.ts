import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Client, createClient, until } from '../support/http/http-client.ts';
import { faultsOf, readLedger } from '../support/ledger.ts';
import { runBerth, startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { readTimes, writeTimes } from '../support/processes/quick-times.ts';
import { instanceRequest } from '../support/rows/requests.ts';

/** A machine without a row is an orphan at its second sight. */
function writeConfig(folder: string): string {
  const config = writeFastConfig(folder);
  const times = readTimes(config);
  writeTimes(config, { ...times, reconcile: { ...times.reconcile, orphanGraceMs: 1 } });
  return config;
}

function isPossible(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const create = async (client: Client): Promise<string> =>
  `/instances/${(await client.request('POST', '/instances', { body: instanceRequest() })).body['id']}`;

/** Polls each path until it has read the state that it is to end in; whatever else it reads on the way is kept. */
async function pollUntil(
  client: Client,
  goals: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const seen = new Map([...goals.keys()].map((path) => [path, new Set<string>()]));
  for (const [path, goal] of goals)
    await until(
      async () => {
        for (const [each, states] of seen) {
          const { status, body } = await client.request('GET', each);
          states.add(String(body['status'] ?? status));
        }
        return seen.get(path)?.has(goal) ?? false;
      },
      () => `${path} never read ${goal}: ${[...(seen.get(path) ?? [])]}`,
    );
  return seen;
}

it('a backup of a busy server, restored after a kill, denies and removes nothing that lives [restore-after-kill]', async () => {
  using folder = temporaryFolder();
  const config = writeConfig(folder.path);
  const data = join(folder.path, 'data');
  const copy = join(folder.path, 'copy.db');
  const first = await startServing(['--config', config]);
  const client = createClient(first.baseUrl, first.apiKey);
  const kept = await Promise.all(Array.from({ length: 5 }, () => create(client)));
  const deleted = await create(client);
  for (const path of [...kept, deleted]) await client.waitFor(path, 'ONLINE');

  const creating = Promise.all(Array.from({ length: 10 }, () => create(client)));
  const backedUp = await runBerth(['backup', copy, '--json', '--config', config]);
  expect(backedUp).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(backedUp.stdout)).toEqual({
    file: copy,
    bytes: statSync(copy).size,
    taken_at: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  const during = await creating;
  await client.request('DELETE', deleted);
  await client.waitFor(deleted, 'GONE');
  const after = await Promise.all(Array.from({ length: 5 }, () => create(client)));
  const living = [...kept, ...during, ...after];
  for (const path of living) await client.waitFor(path, 'ONLINE');
  await first.end('SIGKILL');
  const machines = readLedger(join(data, 'berth.db')).machines.sort();

  for (const name of readdirSync(data)) if (/^berth\.db(-\w+)?$/.test(name)) rmSync(join(data, name));
  copyFileSync(copy, join(data, 'berth.db'));
  await using second = await startServing(['--config', config]);
  expect(second.apiKey).toBe('');
  const again = createClient(second.baseUrl, first.apiKey);
  const goals = new Map([...living.map((path) => [path, 'ONLINE'] as const), [deleted, 'ERROR']]);
  const seen = await pollUntil(again, goals);
  for (const [path, states] of seen)
    expect([path, [...states].filter((state) => state === '404')]).toEqual([path, []]);
  for (const path of [...kept, ...after]) expect([...(seen.get(path) ?? [])]).toEqual(['ONLINE']);

  await until(
    async () => readLedger(join(data, 'berth.db')).work.length === 0,
    () => 'work is still open',
  );
  const ledger = readLedger(join(data, 'berth.db'));
  expect(ledger.machines.sort()).toEqual(machines);
  // The machine that was deleted after the backup counts as lost: its unit is kept for a time.
  const lost = deleted.replace('/instances/', '');
  expect(ledger.claims).toContain(lost);
  const instances = ledger.instances.filter(({ id }) => id !== lost);
  const claims = ledger.claims.filter((id) => id !== lost);
  expect(faultsOf({ ...ledger, instances, claims })).toEqual([]);
  expect(second.stderr).toMatch(/this database was restored from a backup/);
  expect(second.stderr).not.toMatch(/a machine with our tag has no instance/);
  expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
});

it('a server makes its scheduled copy in a process of its own, and shows it', async () => {
  using folder = temporaryFolder();
  const config = writeConfig(folder.path);
  const copies = join(folder.path, 'copies');
  appendFileSync(config, `\nbackups: { folder: ${copies} }\n`);
  await using server = await startServing(['--config', config]);
  const status = async () =>
    JSON.parse((await runBerth(['status', '--json', '--config', config])).stdout) as { backup: unknown };
  let backup: unknown = null;
  await until(
    async () => {
      ({ backup } = await status());
      return backup !== null;
    },
    () => `there is no copy: ${server.stderr}`,
  );
  const [name = ''] = readdirSync(copies);
  const file = join(copies, name);
  expect(backup).toMatchObject({ file, bytes: statSync(file).size });
  const rehearsed = await runBerth(['restore', file, '--rehearse', '--config', config]);
  expect(rehearsed).toMatchObject({ code: 0, stderr: '' });
  const [row] = JSON.parse((await runBerth(['audit', 'ls', '--json', '--config', config])).stdout);
  expect(row).toMatchObject({
    action: 'database.backup',
    actor: 'schedule',
    source: 'server',
    subject: file,
  });
});

it('a start beside the journal of the database before is refused, and says what to move away', async () => {
  using folder = temporaryFolder();
  const config = writeConfig(folder.path);
  const database = join(folder.path, 'data', 'berth.db');
  const copy = join(folder.path, 'copy.db');
  const first = await startServing(['--config', config]);
  expect(await runBerth(['backup', copy, '--config', config])).toMatchObject({ code: 0, stderr: '' });
  await create(createClient(first.baseUrl, first.apiKey));
  await first.end('SIGKILL');
  expect(statSync(`${database}-wal`).size).toBeGreaterThan(0);
  copyFileSync(copy, database);
  const refused = await runBerth(['serve', '--json', '--port', '0', '--config', config]);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(
    /^berth: The database .* was restored from a backup, but .*-wal next to it belongs to/,
  );
  rmSync(`${database}-wal`);
  rmSync(`${database}-shm`);
  await using second = await startServing(['--config', config]);
  expect((await fetch(new URL('/readyz', second.baseUrl))).status).toBe(200);
});

it('a backup that finds no room says so in one sentence and leaves nothing', async ({ skip }) => {
  using folder = temporaryFolder();
  const config = writeConfig(folder.path);
  await (await startServing(['--config', config])).end('SIGTERM');
  const small = join(folder.path, 'small');
  mkdirSync(small);
  if (!isPossible('mount', '-t', 'tmpfs', '-o', 'size=32k', 'none', small)) skip();
  try {
    const refused = await runBerth(['backup', join(small, 'copy.db'), '--config', config]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(
      /^berth: The backup .*copy\.db cannot be written \(.+\): choose a writable place .*\n$/,
    );
    expect(readdirSync(small)).toEqual([]);
  } finally {
    isPossible('umount', '-l', small);
  }
});

it('of a PostgreSQL database it names the tool', async () => {
  const refused = await runBerth(['backup', 'copy.db', '--database', 'postgres://127.0.0.1:1/berth']);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(
    /^berth: A PostgreSQL database is backed up with its own tools, `pg_dump` for one: .*\n$/,
  );
});
