import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTeam } from '../../src/marketplace/teams/teams.ts';
import { createOperatorKey, revokeOperatorKey } from '../../src/operator-kit/keys.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import {
  startTestMarketplace,
  type TestMarketplace,
  type TestMarketplaceOptions,
} from '../support/marketplace.ts';
import { deployment, mail, runningDeployment, segment, volume } from '../support/rows/marketplace-rows.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

let clock: VirtualClock;
let market: TestMarketplace;
let keyId: string;
let authorization: string;
/** The user and the team of all rows. */
let own: { userId: string; teamId: string };

const HOUR_MS = 3_600_000;

beforeEach(() => open());

async function open(options: TestMarketplaceOptions = {}, providerId = 'provider-x'): Promise<void> {
  clock = new VirtualClock();
  market = await startTestMarketplace({ clock, hasOperators: true, ...options });
  const { key, record } = await createOperatorKey({ ...market, random: systemRandom }, { name: 'mara' });
  keyId = record.id;
  authorization = `Bearer ${key}`;
  const { userId, teamId } = market.user;
  own = { userId, teamId };
  const at = clock.now();
  await market.store.transact(async (tx) => {
    await tx.deployments.insert(
      runningDeployment({ ...own, providerId, createdAt: at, startedAt: at, observedAt: at }),
    );
    const failed = { status: 'failed', failureReason: 'out_of_stock' } as const;
    await tx.deployments.insert(
      deployment({ ...own, id: 'dep-2', providerId, createdAt: at + 1, ...failed }),
    );
    await tx.ledger.insertSegment(segment({ ...own, startedAt: at, postedUntil: at }));
    await tx.volumes.insert(volume({ ...own, providerId }));
    await tx.mail.insert(
      mail({ createdAt: at, dueAt: at, failedAt: at, attempts: 4, lastError: 'no route' }),
    );
  });
}
afterEach(() => market[Symbol.asyncDispose]());

async function ask(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const reply = await market.admin.fetch(`/operator/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
}

async function newestAudit() {
  const [entry] = await market.store.read.audit.page({ limit: 1 });
  return entry;
}

it('shows providers with what they run, how old that is, what failed there, and that one is not configured', async () => {
  await clock.advance(HOUR_MS);
  const { body } = await ask('/providers');
  expect(body['providers']).toMatchObject([
    {
      provider: 'provider-x',
      state: 'not_configured',
      running: 1,
      made: 2,
      failed: 1,
      failures: [{ reason: 'out_of_stock', count: 1 }],
      confirmed_until: new Date(clock.now() - HOUR_MS).toISOString(),
    },
  ]);
});

it('finds deployments page by page, and tells all that is known of one', async () => {
  const first = await ask('/deployments?status=all&limit=1');
  expect(first.body).toMatchObject({ deployments: [{ id: 'dep-2', failure_reason: 'out_of_stock' }] });
  const second = await ask(`/deployments?status=all&limit=1&after=${first.body['next']}`);
  expect(second.body).toMatchObject({ deployments: [{ id: 'dep-1' }], next: null });
  expect((await ask('/deployments')).body).toMatchObject({ deployments: [{ id: 'dep-1' }], next: null });
  expect((await ask('/deployments?q=INST-dep-1')).body).toMatchObject({ deployments: [{ id: 'dep-1' }] });
  expect((await ask('/deployments?team=none')).status).toBe(404);
  expect((await ask('/deployments?after=x')).status).toBe(400);
  expect((await ask('/deployments/dep-2')).body).toMatchObject({ status: 'failed', team_id: own.teamId });
  expect((await ask('/deployments/dep-9')).status).toBe(404);
});

it('shows what a team has left, what it pays for, and explains the bill', async () => {
  const { body } = await ask('/teams?spending=true');
  expect(body['teams']).toMatchObject([
    { id: own.teamId, balance_usd: 1000, burn_usd_per_hour: 2, hours_left: 500, billed: 1 },
  ]);
  const { body: team } = await ask(`/teams/${own.teamId}`);
  expect(team).toMatchObject({
    owner: 'first@example.com',
    members: [{ email: 'first@example.com', role: 'owner' }],
    pays_for: [{ id: 'dep-1', kind: 'deployment', usd_per_hour: 2 }],
    booked: [{ kind: 'grant' }],
  });
  expect((await ask('/bills/dep-1?by_day=true')).body).toMatchObject({
    id: 'dep-1',
    segments: [{ state: 'running', hourly_rate_usd: 2, days: [] }],
    taken_usd: 0,
  });
  expect((await ask('/bills/dep-9')).status).toBe(404);
  expect((await ask('/status')).body).toMatchObject({
    deployments: { running: 1 },
    teams: { count: 1, spending: 1, burn_usd_per_hour: 2, without_balance: 0 },
    mails: { waiting: 0 },
    books: { verified_at: null },
  });
});

it('books credit once for a reference, in the name of the operator, also where two ask at the same time', async () => {
  clock.step(1);
  const payment = { kind: 'top_up', amount_usd: 12.5, reference: 'bank-7' };
  const [one, two] = await Promise.all([1, 2].map(() => ask(`/teams/${own.teamId}/credit`, payment)));
  expect([one?.status, one?.body['id']]).toEqual([201, two?.body['id']]);
  expect((await ask(`/teams/${own.teamId}`)).body['balance_usd']).toBe(1012.5);
  expect((await ask('/books')).body['booked']).toMatchObject([
    { kind: 'top_up', amount_usd: 12.5, reference: 'bank-7' },
    { kind: 'grant', amount_usd: 1000 },
  ]);
  expect(await newestAudit()).toMatchObject({
    actor: 'mara',
    source: 'api',
    action: 'credit.top_up',
    subject: own.teamId,
    detail: { amount: '$12.50', reference: 'bank-7' },
    outcome: 'done',
  });
  expect((await ask(`/teams/${own.teamId}/credit`, payment)).body['id']).toBe(one?.body['id']);
  // It is booked once and audited once.
  expect((await market.store.read.audit.page({ limit: 9 })).map(({ action }) => action)).toEqual([
    'credit.top_up',
  ]);
});

it('names a team by its id or its slug, and another one by neither', async () => {
  const { slug = '' } = (await market.store.read.teams.byId(own.teamId)) ?? {};
  const { id } = await createTeam(
    { ...market, random: systemRandom },
    { name: 'Mallory', owner: market.user.email, slug: own.teamId },
  );
  for (const name of [slug, own.teamId]) {
    expect((await ask(`/teams/${name}`)).body['id']).toBe(own.teamId);
    const grant = { kind: 'grant', amount_usd: 1, reference: `for-${name}` };
    expect((await ask(`/teams/${name}/credit`, grant)).body['team_id']).toBe(own.teamId);
    expect(await newestAudit()).toMatchObject({ action: 'credit.grant', subject: own.teamId });
    expect((await ask(`/deployments?team=${name}`)).body['deployments']).toHaveLength(1);
  }
  expect((await ask(`/teams/${id}`)).body['id']).toBe(id);
});

it('refuses what the command line refuses, and keeps a row of it', async () => {
  const taken = { kind: 'grant', amount_usd: -1, reference: 'r-1' };
  expect((await ask(`/teams/${own.teamId}/credit`, taken)).body).toMatchObject({
    error: { code: 'invalid_request' },
  });
  expect(await newestAudit()).toMatchObject({ action: 'credit.grant', outcome: 'refused' });
  for (const kind of ['top_up', 'grant']) {
    const twice = await ask(`/teams/${own.teamId}/credit`, { kind, amount_usd: 1 });
    expect([twice.status, JSON.stringify(twice.body)]).toEqual([400, expect.stringContaining('reference')]);
  }
  expect((await ask('/providers/provider-x/losses/accept', { for_s: 60 })).status).toBe(400);
  for (const reply of [
    await ask('/teams/none'),
    await ask('/deployments?team=none'),
    await ask('/teams/none/credit', { kind: 'grant', amount_usd: 1, reference: 'r-2' }),
    await ask('/mails/none/resend', {}),
  ])
    expect(reply).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  expect((await ask(`/teams/${own.teamId}`)).body['balance_usd']).toBe(1000);
});

it('has a mail that was given up sent again, and a sent one not', async () => {
  expect((await ask('/mails?state=given_up')).body).toMatchObject({ mails: [{ id: 'mail-1', attempts: 4 }] });
  expect((await ask('/mails/mail-1/resend', {})).body).toMatchObject({ state: 'waiting', failed_at: null });
  await clock.advance(10_000);
  expect(market.sent.map(({ id }) => id)).toContain('mail-1');
  expect((await ask('/mails/mail-1/resend', {})).status).toBe(400);
  const actions = (await market.store.read.audit.page({ limit: 9 })).map(({ action, outcome }) => [
    action,
    outcome,
  ]);
  expect(actions).toEqual([
    ['mail.resend', 'refused'],
    ['mail.resend', 'done'],
  ]);
});

it('has the instance of a lost deployment deleted, once, and no other [operator-clean-up]', async () => {
  await market[Symbol.asyncDispose]();
  await open(
    { providers: { 'provider-d': { client: new PlainProvider(new VirtualClock()).client } } },
    'provider-d',
  );
  await market.marketplace.workers.stop();
  const cleanUp = (id: string) => ask(`/deployments/${id}/clean-up`, {});
  const running = await cleanUp('dep-1');
  expect([running.status, JSON.stringify(running.body)]).toEqual([
    400,
    expect.stringContaining('is running'),
  ]);
  await market.store.transact(async (tx) => {
    const record = await tx.deployments.byId('dep-1');
    if (record === null) throw new Error('there is no dep-1');
    await tx.deployments.update({ ...record, status: 'terminated-provider', stoppedAt: clock.now() });
  });
  expect((await ask('/deployments/dep-1')).body).toMatchObject({ lost: true, cleanup: 'none' });
  expect(await cleanUp('dep-1')).toEqual({
    status: 200,
    body: {
      id: 'dep-1',
      provider: 'provider-d',
      provider_instance_id: 'inst-dep-1',
      cleanup: 'wanted',
    },
  });
  expect((await ask('/deployments/dep-1')).body).toMatchObject({ lost: false, cleanup: 'wanted' });
  for (const [id, status, reason] of [
    ['dep-1', 400, 'is already being deleted'],
    ['dep-2', 400, 'never had an instance'],
    ['dep-9', 404, 'There is no deployment'],
  ] as const) {
    const reply = await cleanUp(id);
    expect([id, reply.status, JSON.stringify(reply.body)]).toEqual([
      id,
      status,
      expect.stringContaining(reason),
    ]);
  }
  const rows = await market.store.read.audit.page({ limit: 9 });
  expect(rows.map(({ action, subject, outcome }) => [action, subject, outcome])).toEqual([
    ['losses.clean_up', 'dep-9', 'refused'],
    ['losses.clean_up', 'dep-2', 'refused'],
    ['losses.clean_up', 'dep-1', 'refused'],
    ['losses.clean_up', 'dep-1', 'done'],
    ['losses.clean_up', 'dep-1', 'refused'],
  ]);
});

it('ends the key of an operator at once, writes when it was used, and prunes the audit log', async () => {
  await ask('/mails/mail-1/resend', {});
  const old = { at: clock.now() - 366 * 24 * HOUR_MS, actor: 'mara', source: 'cli', address: null } as const;
  await market.store.transact((tx) =>
    tx.audit.add({ ...old, action: 'mail.resend', subject: null, detail: {}, outcome: 'done' }),
  );
  await clock.advance(60_000);
  expect((await market.store.read.operatorKeys.byId(keyId))?.lastUsedAt).not.toBeNull();
  expect((await ask('/audit')).body['entries']).toHaveLength(1);
  await revokeOperatorKey(market, keyId);
  expect((await ask('/audit')).status).toBe(401);
});
