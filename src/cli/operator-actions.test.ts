import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runMain } from '../../test/support/processes/run-main.ts';
import { dueWork, instance } from '../../test/support/rows/orchestrator-rows.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-actions-'));
const database = `sqlite:${join(folder, 'berth.db')}`;
const OFFER = 'h100-sxm-1x';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

beforeAll(async () => {
  const store = openSqliteStore(join(folder, 'berth.db'));
  const ann = { id: 'acct-ann', name: 'ann', passwordHash: null, createdAt: 1 };
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(ann);
    const row = { ...instance('inst-1'), accountId: ann.id, offerId: OFFER, region: 'eu-frankfurt' };
    const spec = { ...row.spec, createdBy: { account: ann.id, key: 'key-1', address: '192.0.2.1' } };
    await tx.instances.insert({ ...row, spec, status: 'ONLINE' });
    await tx.instances.insert({ ...instance('inst-2'), accountId: ann.id, status: 'PROVISIONING' });
    await tx.work.put({ ...dueWork, resourceId: 'inst-2' });
  });
  await store.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain([...args, '--database', database]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function refusal(...args: string[]): Promise<string> {
  const { code, stderr } = await runMain([...args, '--database', database]);
  expect(code).toBe(1);
  return stderr;
}

describe('cordons on the command line', () => {
  it('are set, listed and removed, each with its row in the audit log [cordon-command]', async () => {
    expect(await run('cordons')).toBe('Nothing is cordoned.\n');
    const set = await run(
      'cordon',
      'offer',
      OFFER,
      '--reason',
      'a recall',
      '--until',
      '2h',
      '--yes',
      '--json',
    );
    expect(JSON.parse(set)).toEqual({
      id: expect.stringMatching(/^cordon-/),
      kind: 'offer',
      name: OFFER,
      platform: null,
      since: expect.stringMatching(TIME),
      until: expect.stringMatching(TIME),
      active: true,
      maintenance: false,
      by: expect.any(String),
      reason: 'a recall',
    });
    expect(await run('cordons')).toMatch(
      /^ID +WHAT +KIND +NAME .*\ncordon-\w{8} +cordon +offer +h100-sxm-1x .* a recall\n/,
    );
    expect(await run('uncordon', 'offer', OFFER, '--yes')).toMatch(
      /^offer h100-sxm-1x takes new instances again/,
    );
    expect(JSON.parse(await run('cordons', '--json'))).toEqual([]);
    const log = JSON.parse(await run('audit', 'ls', '--json'));
    expect(log.map(({ action, subject }: Record<string, string>) => [action, subject])).toEqual([
      ['cordon.remove', `offer ${OFFER}`],
      ['cordon.add', `offer ${OFFER}`],
    ]);
  });

  it('are refused in a sentence for an unknown subject', async () => {
    expect(await refusal('cordon', 'rack', 'r1')).toMatch('give one of region, offer, platform, host');
    expect(await refusal('cordon', 'region', 'mars', '--yes')).toMatch(
      'There is no region mars: give one of eu-frankfurt',
    );
    expect(await refusal('uncordon', 'offer', OFFER, '--yes')).toMatch('No cordon on offer');
    expect(await refusal('cordon', 'offer', OFFER, '--until', '2020-01-01T00:00:00Z')).toMatch(
      'give a future time',
    );
  });

  it('are shown before they are set, and set if the terminal says yes [asks-on-terminal]', async () => {
    const words = ['cordon', 'offer', OFFER, '--database', database];
    const plan = /^Cordon: place nothing new there\. Running .*\nFACT .*\nkind +offer\nname +h100-sxm-1x\n$/;
    expect(await run('cordon', 'offer', OFFER, '--dry-run')).toMatch(plan);
    const unasked = await runMain(words);
    expect(unasked.code).toBe(1);
    expect(unasked.stdout).toMatch(plan);
    expect(unasked.stderr).toMatch(
      'Nothing has changed: there is no terminal to ask on. Give --yes to do it',
    );
    const refused = await runMain(words, 'no\n', { isTTY: true });
    expect(refused).toMatchObject({ code: 0, stderr: 'Do it? [y/N] Nothing has changed.\n' });
    expect(await run('cordons')).toBe('Nothing is cordoned.\n');
    const agreed = await runMain(words, 'y\n', { isTTY: true });
    expect(agreed).toMatchObject({ code: 0, stderr: 'Do it? [y/N] ' });
    expect(await run('cordons')).toMatch('h100-sxm-1x');
    expect(await refusal('uncordon', 'offer', OFFER, '--yes', '--dry-run')).toMatch('exclude each other');
    await run('uncordon', 'offer', OFFER, '--yes');
  });

  it('drain lists the machines that are left [drain-command]', async () => {
    const drained = JSON.parse(await run('drain', 'region', 'eu-frankfurt', '--yes', '--json'));
    expect(drained).toMatchObject({
      empty: false,
      by_status: { ONLINE: 1 },
      instances: [{ id: 'inst-1', account: 'acct-ann', offer: OFFER, host: null }],
    });
    const printed = await run('drain', 'region', 'eu-frankfurt', '--yes');
    expect(printed).toMatch(/Still there: 1 ONLINE\..*\nID .*\ninst-1 +ONLINE +acct-ann/);
    await run('uncordon', 'region', 'eu-frankfurt', '--yes');
  });

  it('of maintenance are planned and cancelled [maintenance-command]', async () => {
    const times = ['--from', '1d', '--until', '2d', '--reason', 'new switches', '--yes'];
    const planned = JSON.parse(await run('maintenance', 'plan', 'region', 'eu-helsinki', ...times, '--json'));
    expect(planned).toMatchObject({ maintenance: true, reason: 'new switches' });
    expect(await run('maintenance', 'ls')).toMatch(/eu-helsinki/);
    expect(await run('cordons')).toMatch(/maintenance +region +eu-helsinki +- +in 23h .* new switches/);
    expect(await run('maintenance', 'cancel', planned.id, '--yes')).toMatch(/has ended or is cancelled/);
    expect(await run('maintenance', 'ls')).toBe('No maintenance is planned.\n');
    const backwards = ['--from', '2d', '--until', '1d', '--yes'];
    expect(await refusal('maintenance', 'plan', 'region', 'eu-helsinki', ...backwards)).toMatch(
      'is before the start',
    );
  });
});

describe('what an operator does to an instance', () => {
  it('is described first, and done with --yes [instance-actions-command]', async () => {
    const dry = JSON.parse(await run('instances', 'destroy', 'inst-1', '--dry-run', '--json'));
    expect(dry).toMatchObject({
      instance: 'inst-1',
      account: 'ann',
      account_id: 'acct-ann',
      status: 'ONLINE',
      done: false,
    });
    expect(await run('instances', 'events', 'inst-1')).toMatch(/ ann key-1 from 192\.0\.2\.1\n/);
    expect(await run('instances', 'rm', 'inst-1', '--dry-run')).toMatch(
      /^inst-1 of account ann \(acct-ann\) is ONLINE\.\n/,
    );
    expect(await run('instances', 'retry', 'inst-2', '--dry-run')).toMatch(/Plan: its step \w+ is retried/);
    expect(await run('instances', 'show', 'inst-1')).toMatch(/ONLINE/);
    expect(await run('instances', 'retry', 'inst-2', '--yes')).toMatch(/^inst-2 .*\n.*\nOrdered: its step/);
    const done = await run('instances', 'destroy', 'inst-1', '--yes', '--reason', 'abuse', '--json');
    expect(JSON.parse(done)).toMatchObject({ done: true });
    expect(await run('instances', 'show', 'inst-1')).toMatch(/DESTROYING/);
    expect(await refusal('instances', 'destroy', 'inst-9')).toMatch('There is no instance inst-9');
    const [entry] = JSON.parse(await run('audit', 'ls', '--json'));
    expect(entry).toMatchObject({
      action: 'instance.destroy',
      subject: 'inst-1',
      detail: { reason: 'abuse' },
    });
  });
});

it('ids are accepted as the tables shorten them [short-ids]', async () => {
  const store = openSqliteStore(join(folder, 'berth.db'));
  const id = (digits: string) => `inst-${digits.padEnd(32, '0')}`;
  for (const digits of ['aaaa1', 'aaaa2', 'bbbb'])
    await store.transact((tx) => tx.instances.insert({ ...instance(id(digits)), accountId: 'acct-ann' }));
  await store.close();
  expect(await run('instances', 'ls')).toMatch(/\ninst-bbbb0000 /);
  expect(JSON.parse(await run('instances', 'show', 'inst-bbbb0000', '--json'))).toMatchObject({
    id: id('bbbb'),
  });
  expect(await refusal('instances', 'show', 'inst-aaaa')).toMatch('2 instances match inst-aaaa: ');
  expect(await run('instances', 'rm', 'inst-aaaa2', '--dry-run')).toMatch(
    new RegExp(`^${id('aaaa2')} of account ann`),
  );
  const key = JSON.parse(await run('keys', 'create', '--account', 'ann', '--json'));
  expect(await run('keys', 'revoke', key.id.slice(0, 12), '--yes')).toContain(
    `Key ${key.id} is revoked since `,
  );
  const operator = JSON.parse(await run('operators', 'create', 'eve', '--json'));
  expect(await run('operators', 'revoke', operator.id.slice(0, 8), '--yes')).toContain(
    `Key ${operator.id} is`,
  );
  const [revoked] = JSON.parse(await run('audit', 'ls', '--action', 'key.revoke', '--json'));
  expect(revoked).toMatchObject({ subject: key.id });
});

it('a decision about an orphan is described first, and names where to see its outcome [orphans-command]', async () => {
  const [machine, volume] = ['berth-inst-9', `berth-vol-${'0'.repeat(32)}`];
  const store = openSqliteStore(join(folder, 'berth.db'));
  await store.transact(async (tx) => {
    const alarm = {
      platform: 'default',
      text: 'it is there',
      since: 1,
      lastSeenAt: 1,
      acknowledgedBy: null,
      note: null,
    };
    await tx.alarms.put({ ...alarm, kind: 'orphan_machine', subject: machine });
    await tx.alarms.put({ ...alarm, kind: 'orphan_volume', subject: volume });
  });
  await store.close();
  expect(await run('orphans', 'rm', machine, '--dry-run')).toMatch(/^it is there\nPlan: it is removed,/);
  expect(await run('orphans', 'adopt', machine, '--yes')).toMatch(
    /^it is there\nOrdered: .*\nTo see its outcome: berth audit ls --subject berth-inst-9\n$/,
  );
  expect(await refusal('orphans', 'rm', machine, '--yes')).toMatch(
    'adopt of berth-inst-9 was already ordered',
  );
  expect(await refusal('orphans', 'adopt', 'inst-9')).toMatch('There is no orphan inst-9');
  expect(await run('orphans', 'rm', volume, '--yes')).toMatch('To see its outcome: berth work ls');
  const log = JSON.parse(await run('audit', 'ls', '--json'));
  expect(
    log.slice(0, 3).map(({ action, outcome }: Record<string, string>) => `${action} ${outcome}`),
  ).toEqual(['volume.destroy done', 'machine.destroy refused', 'machine.adopt done']);
});

it('accepts the losses of a configured platform, with a row in the audit log', async () => {
  expect(await refusal('losses', 'accept', '--platform', 'east', '--yes')).toMatch(
    'There is no platform east',
  );
  const accepted = JSON.parse(await run('losses', 'accept', '--for', '5m', '--yes', '--json'));
  expect(accepted).toEqual({ platforms: ['default'], accepted_until: expect.stringMatching(TIME) });
  const [entry] = JSON.parse(await run('audit', 'ls', '--json'));
  expect(entry).toMatchObject({ action: 'losses.accept', subject: 'default' });
});

it('requests a reload only with a valid catalog [reload-command]', async () => {
  expect(JSON.parse(await run('reload', '--json'))).toMatchObject({ requested: true });
  const config = join(folder, 'berth.yaml');
  writeFileSync(config, `catalog: none-such.yaml\ndatabase: ${database}\n`);
  const { code, stderr } = await runMain(['reload', '--config', config]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('none-such.yaml')]);
  const log = JSON.parse(await run('audit', 'ls', '--json'));
  expect(log.filter(({ action }: { action: string }) => action === 'configuration.reload')).toHaveLength(1);
});
