import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { claim, dueWork, instance } from '../../test/support/rows/orchestrator-rows.ts';
import { until } from '../../test/support/time/until.ts';
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

it('reports that no work is open and that there is no instance', async () => {
  expect(await run('status')).toMatch(/^There is no instance\.\nPLATFORM +HEALTHY\n/);
  expect(await run('work', 'ls')).toBe('No work is open.\n');
});

it('prints a figure over time as a table, as JSON and as CSV', async () => {
  expect(await run('figures', '--range', '24h')).toMatch(
    /^Units, units\.\nAT +SOLD +IN REPAIR .*\n\d{4}-\d\d-\d\dT\d\d:00Z +- /,
  );
  expect(JSON.parse(await run('figures', 'earned', '--json'))).toMatchObject({
    figure: 'earned',
    unit: 'USD',
  });
  const lines = (await run('figures', 'creates', '--range', '24h', '--csv')).trimEnd().split('\n');
  expect([lines.length, lines[0], lines[1]?.replace(/^[^,]+/, '')]).toEqual([
    25,
    'at,online,failed,deleted',
    ',,,',
  ]);
});

it('lists accounts as JSON', async () => {
  expect(JSON.parse(await run('accounts', 'list', '--json'))).toEqual([
    {
      id: expect.any(String),
      name: 'ann',
      has_password: false,
      created_at: expect.stringMatching(TIME),
      closed_at: null,
      instances: 0,
    },
  ]);
  expect(await run('accounts', 'list')).toMatch(
    /^NAME +INSTANCES +PASSWORD +AGE +CLOSED\nann +0 +no +\d+s +-\n$/,
  );
  expect(await run('accounts', 'list', '-o', 'wide')).toMatch(
    /^NAME +ID +INSTANCES +PASSWORD +CREATED +CLOSED\nann +acct-\w+ +0 +no +\d{4}-\d\d-\d\dT.*Z +-\n$/,
  );
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
  const makingMs = Date.parse(key.expires_at) - 30 * 60_000 - begun;
  expect(makingMs).toBeGreaterThanOrEqual(0);
  expect(makingMs).toBeLessThanOrEqual(Date.now() - begun);
});

it('prints losses as JSON', async () => {
  expect(JSON.parse(await run('losses', '--json'))).toEqual([
    {
      platform: 'default',
      lost: 0,
      allowed: expect.any(Number),
      accepted_until: null,
      platform_down_since: null,
      volumes_doubted_since: null,
      held: [],
    },
  ]);
  expect(await run('losses')).toMatch(
    /^PLATFORM +LOST +ALLOWED +HELD .*\ndefault +0 +\d+ +0 .*\nNo instance is held\.\n$/,
  );
});

it('lists instances, shows one, and prints its history [instances-command]', async () => {
  const store = openSqliteStore(join(folder, 'berth.db'));
  const [owner] = await store.read.credentials.listAccounts();
  const accountId = owner?.id ?? '';
  const at = Date.UTC(2030, 0, 1);
  const failed = { ...instance('inst-1'), accountId, createdAt: at, error: 'it did not boot' };
  await store.transact(async (tx) => {
    await tx.instances.insert({ ...failed, status: 'ERROR' });
    await tx.instances.insert({ ...instance('inst-2'), accountId, createdAt: at + 1, region: 'there' });
    await tx.work.put({ ...dueWork, resourceId: 'inst-2' });
    const moved = { fromStatus: 'PROVISIONING', toStatus: 'ERROR', detail: 'it did not boot' } as const;
    await tx.history.moved({ instanceId: 'inst-1', at: at + 5, cause: 'request', ...moved });
    await tx.history.step(
      {
        instanceId: 'inst-1',
        at: at + 5,
        cause: 'create',
        attempt: 2,
        next: 'destroy',
        detail: null,
        calls: [{ call: 'create', outcome: 'boot_failed', tookMs: 4, detail: 'no kernel' }],
        console: 'kernel panic',
        tookMs: 5,
      },
      'row',
    );
  });
  await store.close();
  const listed = async (...flags: string[]) =>
    JSON.parse(await run('instances', 'ls', '--json', ...flags)).map(({ id }: { id: string }) => id);
  expect(await listed()).toEqual(['inst-1', 'inst-2']);
  expect(await listed('--status', 'error')).toEqual(['inst-1']);
  expect(await listed('--region', 'there', '--account', 'ann', '--offer', 'offer')).toEqual(['inst-2']);
  expect(await run('instances', 'ls')).toMatch(
    /^INSTANCE +NAME +STATUS .*\ninst-1 +- +ERROR .* it did not boot\n/,
  );
  const created = { cause: 'request', to: 'PROVISIONING', at: new Date(at).toISOString() };
  const ended = {
    at: new Date(at + 5).toISOString(),
    cause: 'create',
    attempt: 2,
    tries_between: 0,
    from: 'PROVISIONING',
    to: 'ERROR',
    next: 'destroy',
    detail: 'it did not boot',
    calls: [{ call: 'create', outcome: 'boot_failed', took_ms: 4, detail: 'no kernel' }],
    console: 'kernel panic',
    took_ms: 5,
    by: null,
  };
  const events = [expect.objectContaining(created), ended];
  expect(JSON.parse(await run('instances', 'events', 'inst-1', '--json'))).toEqual(events);
  expect(JSON.parse(await run('instances', 'show', 'inst-1', '--json'))).toMatchObject({
    id: 'inst-1',
    status: 'ERROR',
    work: null,
    events,
  });
  const shown = await run('instances', 'show', 'inst-1');
  expect(shown).toMatch(/\nerror +it did not boot\n/);
  expect(shown).toContain('create (2)  PROVISIONING → ERROR  5 ms');
  expect(shown).toContain('create boot_failed 4 ms (no kernel)');
  expect(shown).toMatch(/console:\n {2}kernel panic\n$/);
  expect(await run('instances', 'show', 'inst-2')).toMatch(/\nwork +create\nattempt +0\n/);
});

it('lists the work that is open, and sums it up [status-command]', async () => {
  expect(JSON.parse(await run('work', 'ls', '--json'))).toEqual([
    {
      resource: 'inst-2',
      step: 'create',
      platform: 'default',
      attempt: 0,
      waits_since: new Date(dueWork.notBefore).toISOString(),
      next_try_at: new Date(dueWork.notBefore).toISOString(),
      deadline_at: null,
      runs_now: false,
      held: false,
      phase: null,
      phase_since: null,
      phase_due_at: null,
      last_problem: null,
    },
  ]);
  const store = openSqliteStore(join(folder, 'berth.db'));
  const at = dueWork.notBefore;
  const [lease] = await store.claimWork({ ...claim, now: at, leaseUntil: at + 1 });
  if (lease === undefined) throw new Error('expected a claim');
  const progress = { phase: 'spawning', since: at, deadlineAt: at + 1 };
  await store.transact((tx) =>
    tx.work.release(lease, { cookie: 'c', notBefore: at, lastError: null, attempt: 0, progress }),
  );
  await store.close();
  const facts = {
    phase: 'spawning',
    phase_since: new Date(at).toISOString(),
    phase_due_at: new Date(at + 1).toISOString(),
  };
  expect(JSON.parse(await run('work', 'ls', '--json'))).toMatchObject([facts]);
  expect(JSON.parse(await run('instances', 'show', 'inst-2', '--json'))).toMatchObject(facts);
  const shown = await run('instances', 'show', 'inst-2');
  expect(shown).toMatch(/\nphase +spawning\n/);
  expect(shown).toMatch(/The platform reports “spawning” for .*, overdue for /);
  const none = await runMain(['work', 'ls', '--limit', '0', '--database', database]);
  expect([none.code, none.stderr]).toEqual([
    1,
    expect.stringContaining('--limit 0: give a whole number from 1.'),
  ]);
  expect(JSON.parse(await run('status', '--json'))).toEqual({
    instances: { ERROR: 1, PROVISIONING: 1 },
    platforms: [{ platform: 'default', down_since: null }],
    work: { open: 1, oldest_due_at: new Date(dueWork.notBefore).toISOString() },
    units_taken: 0,
    storage_taken_gb: 0,
    alarms: { count: 0, unacknowledged: 0 },
    backup: null,
  });
  const status = await run('status');
  expect(status).toMatch(/\nERROR +1\n/);
  expect(status).toMatch(/\ndefault +yes\n/);
  expect(status).toContain('Open steps of work: 1; the oldest is due since 2026-11-21');
});

it.each([
  [['show', 'inst-9'], 'There is no instance inst-9'],
  [['events', 'inst-9'], 'There is no instance inst-9'],
  [['ls', '--status', 'LOST'], '--status LOST: give one of PROVISIONING'],
  [['ls', '--account', 'bob'], 'There is no account bob'],
])('instances %j: prints what is wrong', async (args, sentence) => {
  const { code, stderr } = await runMain(['instances', ...args, '--database', database]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
});

it('lists the alarms, and records who acknowledged one [alarms-command]', async () => {
  expect(await run('alarms', 'ls')).toBe('No alarm is open.\n');
  const store = openSqliteStore(join(folder, 'berth.db'));
  const at = Date.UTC(2030, 0, 1);
  const alarm = {
    kind: 'platform_down',
    platform: 'east',
    text: 'it is down',
    acknowledgedBy: null,
    note: null,
  } as const;
  await store.transact(async (tx) => {
    await tx.alarms.put({ ...alarm, subject: 'east', since: at, lastSeenAt: at });
    await tx.alarms.put({ ...alarm, subject: 'west', since: at + 1, lastSeenAt: at + 1 });
  });
  await store.close();
  const ack = ['alarms', 'ack', 'platform_down', 'west', '--by', 'ann', '--note', 'the switch', '--yes'];
  expect(await run(...ack)).toContain('acknowledged by ann');
  const [east, west] = JSON.parse(await run('alarms', 'ls', '--json'));
  expect(east).toEqual({
    kind: 'platform_down',
    severity: 'critical',
    subject: 'east',
    platform: 'east',
    since: new Date(at).toISOString(),
    last_seen_at: new Date(at).toISOString(),
    acknowledged_by: null,
    note: null,
    text: 'it is down',
    runbook: 'docs/runbook.md#the-platform-does-not-answer-or-cannot-be-believed',
  });
  expect(west).toMatchObject({ subject: 'west', acknowledged_by: 'ann', note: 'the switch' });

  const later = openSqliteStore(join(folder, 'berth.db'));
  await later.transact((tx) => tx.alarms.end({ kind: 'platform_down', subject: 'west' }, at + 60_000));
  await later.close();
  expect(JSON.parse(await run('alarms', 'history', '--platform', 'east', '--json'))).toMatchObject([
    { subject: 'west', note: 'the switch', until: new Date(at + 60_000).toISOString() },
  ]);
  const range = ['--from', '2030-01-01T00:00:00Z', '--to', '2030-01-01T00:02:00Z'];
  const night = JSON.parse(await run('timeline', ...range, '--json'));
  expect(night.map(({ event, subject }: Record<string, string>) => `${event} ${subject}`)).toEqual([
    'platform_down ended west',
    'create: PROVISIONING → ERROR inst-1',
    'platform_down began west',
    'platform_down began east',
  ]);
});

it.each([
  [['platform_up'], '<kind> platform_up: give one of platform_down'],
  [['clock_skew', 'elsewhere'], 'No alarm clock_skew elsewhere is open'],
])('refuses to acknowledge %j', async (args, sentence) => {
  const { code, stderr } = await runMain(['alarms', 'ack', ...args, '--yes', '--database', database]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
});

it('lists capacity, platforms and orphans [fleet-commands]', async () => {
  const { placements, storage } = JSON.parse(await run('capacity', '--json'));
  const east = { platform: 'default', claimed: 0, without_row: 0 };
  expect(placements.length).toBeGreaterThan(0);
  for (const one of placements)
    expect(one).toMatchObject({ ...east, available: one.unavailable.length > 0 ? 0 : null });
  expect(storage).toContainEqual(expect.objectContaining({ claimed_gb: 0 }));
  const [first] = placements;
  const text = await run('capacity');
  expect(text).toMatch(/^OFFER +REGION +PLATFORM +UNITS +TAKEN +AVAILABLE +WHY NOT\n/);
  expect(text).toContain(first.offer);
  expect(JSON.parse(await run('platforms', '--json'))).toMatchObject([
    { platform: 'default', driver: 'simulator', inventory: null, hosts: expect.any(Array) },
  ]);
  expect(await run('platforms')).toMatch(
    /^PLATFORM +DRIVER +STATE +HOSTS +INSTANCES\ndefault +simulator +trusted +\d+ +/,
  );
  expect(await run('platforms', 'show', 'default')).toMatch(/\nstate +trusted\n.*\nHosts:\nHOST +STATE/s);
  expect(await run('orphans')).toBe('There is no orphan.\n');
  expect(JSON.parse(await run('orphans', '--json'))).toEqual([]);
});

it('makes, lists and revokes the keys of operators [operators-command]', async () => {
  expect(await run('operators', 'list')).toMatch(/^There is no key of an operator/);
  const { id, operator_key: key } = JSON.parse(await run('operators', 'create', 'eve', '--json'));
  expect(key).toMatch(/^berthop_/);
  const listed = async () => JSON.parse(await run('operators', 'list', '--json'));
  const valid = { id, name: 'eve', role: 'admin', state: 'valid', revoked_at: null, last_used_at: null };
  expect(await listed()).toEqual([
    { ...valid, key: `${key.slice(0, 10)}…${key.slice(-4)}`, created_at: expect.stringMatching(TIME) },
  ]);
  expect(await run('operators', 'revoke', id, '--yes')).toContain(`Key ${id} is revoked since `);
  expect(await listed()).toMatchObject([
    { ...valid, state: 'revoked', revoked_at: expect.stringMatching(TIME) },
  ]);
  const { code, stderr } = await runMain(['operators', 'revoke', 'op-none', '--yes', '--database', database]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('There is no operator key "op-none"')]);
});

it('lists what operators did on the command line, also what was refused [audit-command]', async () => {
  const entries = JSON.parse(await run('audit', 'ls', '--json'));
  const rows = entries.map(({ action, subject, outcome }: Record<string, string>) => [
    action,
    subject,
    outcome,
  ]);
  expect(rows.slice(0, 3)).toEqual([
    ['operator_key.revoke', 'op-none', 'refused'],
    ['operator_key.revoke', expect.stringMatching(/^op-/), 'done'],
    ['operator_key.create', 'eve', 'done'],
  ]);
  expect(rows).toContainEqual(['alarm.acknowledge', 'platform_down west', 'done']);
  expect(rows).toContainEqual(['alarm.acknowledge', 'clock_skew elsewhere', 'refused']);
  expect(rows).toContainEqual(['account.create', 'ann', 'done']);
  expect(entries[0]).toMatchObject({
    source: 'cli',
    address: null,
    detail: { reason: expect.stringContaining('There is no operator key') },
  });
  expect(JSON.stringify(entries)).not.toMatch(/berth(op)?_\w{20}/);
  const acknowledged = JSON.parse(await run('audit', 'ls', '--actor', 'ann', '--json'));
  expect(acknowledged).toMatchObject([{ actor: 'ann', action: 'alarm.acknowledge' }]);
  expect(await run('audit', 'ls', '--limit', '1')).toMatch(
    /^AT +ACTOR .*\n.* operator_key.revoke +op-none +refused/,
  );
  expect(await run('audit', 'ls', '--subject', 'nothing')).toBe('The audit log has no such entry.\n');
});

it('watches a list: prints it, then the rows that change, until Ctrl-C [watch]', async () => {
  const watched = runMain(['audit', 'ls', '--limit', '2', '-w', '-o', 'json', '--database', database]);
  await until('both rows are printed', () => vi.mocked(process.stdout.write).mock.calls.length > 1);
  process.emit('SIGINT');
  const { code, stdout } = await watched;
  expect(code).toBe(0);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).action),
  ).toEqual(['operator_key.revoke', 'operator_key.revoke']);
});

it('checks the database for damage', async () => {
  expect(JSON.parse(await run('check-database', '--json'))).toEqual({ ok: true, bytes: expect.any(Number) });
  expect(await run('check-database')).toMatch(/^OK, no damage found: \d+ bytes\.\n$/);
});
