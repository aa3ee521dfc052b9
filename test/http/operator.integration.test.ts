import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { audited } from '../../src/operator-kit/audit.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import { brokenForms, hostileForms, hostileReads } from '../support/http/hostile-requests.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instance } from '../support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

let berth: TestOrchestrator;
let key: string;

beforeAll(async () => {
  berth = await startTestOrchestrator({ clock: new VirtualClock() });
  key = await berth.addOperator('ann');
});
afterAll(() => berth[Symbol.asyncDispose]());

async function read<Body = Record<string, unknown>>(path: string): Promise<Body> {
  const { status, body } = await berth.operate<Body>(key, path);
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return body;
}

const post = (path: string, body: unknown) => berth.operate(key, path, { method: 'POST', body });
const at = Date.UTC(2026, 10, 20);
const put = (id: string, changes: Partial<InstanceRecord>) =>
  berth.store.transact((tx) =>
    tx.instances.insert(instance(id, { accountId: berth.account.id, createdAt: at, ...changes })),
  );

describe('the views', () => {
  const later = Date.UTC(2026, 10, 21, 1);
  beforeAll(async () => {
    await put('inst-1', { status: 'ONLINE', host: 'node-1', name: 'first' });
    await put('inst-2', { status: 'ERROR', createdAt: at + 1, error: 'it did not boot', host: 'node-1' });
    await put('inst-3', { status: 'ONLINE', createdAt: at + 2, platform: 'east' });
    await berth.store.transact(async (tx) => {
      const moved = { fromStatus: 'PROVISIONING', toStatus: 'ERROR', detail: 'no kernel' } as const;
      await tx.history.moved({ instanceId: 'inst-2', at: at + 5, cause: 'request', ...moved });
      await tx.work.put({
        resourceId: 'inst-2',
        resourceKind: 'instance',
        kind: 'destroy',
        notBefore: later,
        deadlineAt: null,
      });
      await tx.marks.put('platform_down_since', at);
      const alarm = {
        platform: 'default',
        text: 'look',
        since: at,
        lastSeenAt: at,
        acknowledgedBy: null,
        note: null,
      };
      await tx.alarms.put({ ...alarm, kind: 'orphan_machine', subject: 'berth-stray' });
      await tx.alarms.put({ ...alarm, kind: 'platform_down', subject: 'default' });
    });
  });

  it('find instances by filters and text, and go through them page by page', async () => {
    interface Page {
      instances: { id: string }[];
      total: number;
      next: string | null;
    }
    const find = async (query: string) => {
      const { instances, ...page } = await read<Page>(`/instances?${query}`);
      return { ...page, ids: instances.map(({ id }) => id) };
    };
    const first = await find('limit=2');
    expect(first).toEqual({ ids: ['inst-1', 'inst-2'], total: 3, next: expect.any(String) });
    expect(await find(`limit=2&after=${first.next}`)).toEqual({ ids: ['inst-3'], total: 3, next: null });
    expect((await find('order=newest')).ids).toEqual(['inst-3', 'inst-2', 'inst-1']);
    expect((await find('status=ERROR')).ids).toEqual(['inst-2']);
    expect((await find('platform=east')).ids).toEqual(['inst-3']);
    expect((await find('host=node-1&q=FIRST')).ids).toEqual(['inst-1']);
    expect((await find('account=default&q=boot')).ids).toEqual(['inst-2']);
    expect((await find(`account=${berth.account.id}&limit=1`)).total).toBe(3);
  });

  it('tell of each offer and region why none can be had', async () => {
    const { clock } = berth;
    await using closed = await startTestOrchestrator({
      clock,
      changeCatalog: (catalog) => {
        const [[id, offer] = [], ...others] = catalog.offers;
        const [region, ...regions] = catalog.regions;
        if (id === undefined || offer === undefined || region === undefined)
          throw new Error('nothing is sold');
        const one = { ...offer, maintenance: true, placements: [{ region: region[0], units: 0 }] };
        return {
          regions: new Map([[region[0], { ...region[1], drained: true }], ...regions]),
          offers: new Map([[id, one], ...others]),
        };
      },
    });
    interface Capacity {
      placements: { available: number; units: number; unavailable: { reason: string }[] }[];
    }
    const { body } = await closed.operate<Capacity>(await closed.addOperator('eve'), '/capacity');
    const [first, ...others] = body.placements;
    expect(first).toMatchObject({
      ...{ units: 0, available: 0 },
      unavailable: [
        { reason: 'region_drained' },
        { reason: 'offer_maintenance' },
        { reason: 'sold_out', text: 'The catalog lists no units in this region.' },
      ],
    });
    const open = others.filter(({ unavailable }) => unavailable.length === 0);
    expect(open.length).toBeGreaterThan(0);
    for (const { available, units } of open) expect(available).toBe(units);
    const { placements } = await read<Capacity>('/capacity');
    expect(placements.length).toBeGreaterThan(0);
  });

  it('show platforms with their hosts, also one that is not configured any more', async () => {
    expect(await read('/platforms')).toMatchObject({
      platforms: [
        {
          platform: 'default',
          driver: 'simulator',
          down_since: new Date(at).toISOString(),
          hosts: expect.arrayContaining([
            expect.objectContaining({ host: 'node-1', instances: { ONLINE: 1, ERROR: 1 } }),
            expect.objectContaining({ host: 'hal-fra1-b-r1-h100-sxm-1x-1' }),
          ]),
        },
        { platform: 'east', driver: null, hosts: [{ host: null, instances: { ONLINE: 1 } }] },
      ],
    });
  });
});

describe('accounts and keys', () => {
  it('are made, listed and revoked, and no list has a whole key', async () => {
    const made = await post('/accounts', { name: 'acme' });
    expect(made).toMatchObject({ status: 201, body: { name: 'acme' } });
    const created = await post('/accounts/acme/keys', { label: 'first' });
    expect(created.status).toBe(201);
    const { id, api_key: secret } = created.body as { id: string; api_key: string };
    const opens = async () => (await berth.request('GET', '/instances', { key: secret })).status;
    expect(await opens()).toBe(200);
    const keys = await read('/keys?account=acme');
    expect(keys).toMatchObject({ keys: [{ id, account: 'acme', label: 'first', state: 'valid' }] });
    expect(JSON.stringify([keys, await read('/operator-keys'), await read('/audit')])).not.toContain(secret);
    const revoked = await post(`/keys/${id}/revoke`, {});
    expect(revoked).toMatchObject({ status: 200, body: { id } });
    expect(await post(`/keys/${id}/revoke`, {})).toEqual(revoked);
    expect(await read(`/keys?account=acme`)).toMatchObject({ keys: [{ state: 'revoked' }] });
    expect(await read('/accounts')).toMatchObject({
      accounts: expect.arrayContaining([expect.objectContaining({ name: 'acme', instances: 0 })]),
    });
  });
});

it('refuses a NUL and half a surrogate pair in every text of an action, and writes none into the audit log', async () => {
  const before = await berth.store.read.audit.page({ limit: 1 });
  const window = { starts_at: '2030-01-01T00:00:00Z', ends_at: '2030-01-02T00:00:00Z' };
  for (const text of ['a\0b', 'a\ud800b'])
    for (const [path, body, field] of [
      ['/accounts/acme/keys', { label: text }, 'label'],
      ['/cordons', { kind: 'region', name: 'eu-frankfurt', reason: text }, 'reason'],
      ['/maintenance', { kind: 'region', name: 'eu-frankfurt', reason: text, ...window }, 'reason'],
    ] as const)
      expect(await post(path, body)).toMatchObject({
        status: 400,
        body: { error: { details: { issues: [{ path: field, message: expect.stringContaining('NUL') }] } } },
      });
  expect(await berth.store.read.audit.page({ limit: 1 })).toEqual(before);
});

describe('an account', () => {
  it('is deleted, with a dry run first and drained where that is said [api-close-account]', async () => {
    const { body } = await post('/accounts', { name: 'closing' });
    const { id } = body as { id: string };
    const { body: made } = await post('/accounts/closing/keys', {});
    const { api_key: secret } = made as { api_key: string };
    await put('inst-closing', { accountId: id, status: 'ONLINE' });
    expect(await post('/accounts/closing/delete', {})).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state', message: expect.stringContaining('has 1 instance') } },
    });
    const dry = await post(`/accounts/${id}/delete`, { drain: true });
    expect(dry).toMatchObject({ status: 200, body: { account: 'closing', instances: 1, done: false } });
    expect((await berth.request('GET', '/instances', { key: secret })).status).toBe(200);
    const done = await post(`/accounts/${id}/delete`, { drain: true, dry_run: false });
    expect(done).toMatchObject({ status: 200, body: { account: 'closing', id, instances: 1, done: true } });
    expect((await berth.store.read.instances.byId('inst-closing'))?.status).toBe('DESTROYING');
    expect(await post('/accounts/none/delete', {})).toMatchObject({ status: 404 });
    await post('/accounts', { name: 'empty' });
    expect(await post('/accounts/empty/delete', { dry_run: false })).toMatchObject({
      status: 200,
      body: { deleted: true, done: true },
    });
    expect(await berth.store.read.credentials.accountByName('empty')).toBeNull();
    const { entries } = await read<{ entries: object[] }>('/audit?limit=3');
    expect(entries).toMatchObject([
      { action: 'account.delete', subject: 'empty', outcome: 'done', actor: 'ann', source: 'api' },
      { action: 'account.create', subject: 'empty' },
      { action: 'account.delete', subject: 'closing', detail: { drain: true }, outcome: 'done' },
    ]);
  });
});

describe('the audit log', () => {
  it('has a row for what was done, by whom and from where, and one for what was refused', async () => {
    const acknowledged = await post('/alarms/acknowledge', { kind: 'platform_down' });
    expect(acknowledged).toMatchObject({ status: 200, body: { alarms: [{ acknowledged_by: 'ann' }] } });
    const refused = await post('/alarms/acknowledge', { kind: 'clock_skew', subject: 'x' });
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
    expect(await post('/accounts', { name: 'NOT A NAME' })).toMatchObject({ status: 400 });
    const { entries } = await read<{ entries: object[] }>('/audit?limit=3');
    const ann = { actor: 'ann', source: 'api', address: expect.any(String) };
    expect(entries).toMatchObject([
      { ...ann, action: 'account.create', subject: 'NOT A NAME', outcome: 'refused' },
      { ...ann, action: 'alarm.acknowledge', subject: 'clock_skew x', outcome: 'refused' },
      { ...ann, action: 'alarm.acknowledge', subject: 'platform_down', outcome: 'done' },
    ]);
    expect(entries[1]).toMatchObject({
      detail: { reason: 'No alarm clock_skew x is open: see `berth alarms ls`.' },
    });
  });

  it('is read page by page, the newest first, and by what was done', async () => {
    const all = (await read<{ entries: { id: number }[] }>('/audit')).entries.map(({ id }) => id);
    interface Page {
      entries: { id: number }[];
      next: string | null;
    }
    const seen: number[] = [];
    let next: string | null = '';
    while (next !== null) {
      const after: string = next === '' ? '' : `&after=${next}`;
      const page: Page = await read<Page>(`/audit?limit=2${after}`);
      seen.push(...page.entries.map(({ id }) => id));
      next = page.next;
    }
    expect(seen).toEqual(all);
    expect(all).toEqual([...all].sort((a, b) => b - a));
    const filtered = await read('/audit?action=key.create&actor=ann&subject=acme');
    expect(filtered).toMatchObject({ entries: [{ action: 'key.create', detail: { label: 'first' } }] });
  });

  it('has no row of what was not written: both are one transaction', async () => {
    const { store, clock } = berth;
    const before = await store.read.audit.page({ limit: 100 });
    const action = { action: 'test', subject: 'x' };
    const doing = audited(
      { store, clock },
      { name: 'ann', source: 'cli', address: null },
      action,
      async (inside) => {
        await inside.transact((tx) => tx.marks.put('losses_accepted_until', 1));
        throw new Error('broken off');
      },
    );
    await expect(doing).rejects.toThrow('broken off');
    expect(await store.read.marks.get('losses_accepted_until')).toBeNull();
    const [failed, ...rest] = await store.read.audit.page({ limit: 100 });
    expect(failed).toMatchObject({
      ...action,
      outcome: 'failed',
      detail: { reason: 'it failed; see the log' },
    });
    expect(rest).toEqual(before);
  });

  it('is cut in the audit log where it names what is longer than any name [audit-cut]', async () => {
    const name = 'x'.repeat(100_000);
    expect(await post('/losses/accept', { platform: name })).toMatchObject({ status: 404 });
    const [row] = await berth.store.read.audit.page({ limit: 1 });
    expect(row).toMatchObject({ action: 'losses.accept', outcome: 'refused' });
    expect([row?.subject?.length, String(row?.detail['reason']).length]).toEqual([1_000, 1_000]);
  });
});

it.each([
  ['/instances?limit=0', 400],
  ['/instances?limit=1e1', 400],
  ['/instances?limit=501', 400],
  ['/instances?status=GONE', 400],
  ['/instances?after=nonsense', 400],
  ['/audit?after=x', 400],
  ['/instances?q=a%00', 400],
  ['/instances/a%00', 400],
  ['/instances?account=nobody', 404],
  ['/keys?account=nobody', 404],
  ['/instances/inst-none', 404],
  ['/nothing', 404],
])('refuses %s with %i in the envelope', async (path, status) => {
  expect(await berth.operate(key, path)).toEqual({
    status,
    body: { error: expect.objectContaining({ code: status === 400 ? 'invalid_request' : 'not_found' }) },
  });
});

it.each([
  ['POST', '/status', 405, 'GET, HEAD'],
  ['PUT', '/cordons', 405, 'GET, HEAD, POST'],
  ['POST', '/nothing', 404, null],
])('answers %s %s with %i before it reads the body', async (method, path, status, allow) => {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'text/plain' };
  const reply = await berth.admin.fetch(`/operator/v1${path}`, { method, headers, body: 'x' });
  expect([reply.status, reply.headers.get('allow')]).toEqual([status, allow]);
});

it.each([
  ['a\u202eb', 'U+202E'],
  ['a\nb', 'U+000A'],
  ['a\u200bb', 'U+200B'],
  ['a\u{e0041}b', 'U+E0041'],
])('refuses an invisible character in any text, and names it: %j', async (text, point) => {
  const cordon = { kind: 'region', name: 'eu-frankfurt', reason: text };
  for (const [path, body] of [
    ['/cordons', cordon],
    ['/maintenance', cordon],
    ['/accounts/default/keys', { label: text }],
  ] as const)
    expect(await post(path, body)).toMatchObject({
      status: 400,
      body: {
        error: { message: expect.stringContaining(` has an invisible character (${point}): remove it.`) },
      },
    });
});

it('writes when the key of an operator was last used', async () => {
  const used = async () => (await berth.store.read.operatorKeys.list())[0]?.lastUsedAt;
  await read('/status');
  await (berth.clock as VirtualClock).advance(15_000);
  expect(await used()).toEqual(expect.any(Number));
});

it('answers no hostile request with a 5xx [operator-hostile]', async () => {
  const gets = berth.operator.routes.filter(({ method }) => method === 'GET').map(({ path }) => path);
  const requests = [
    ...hostileReads(gets, ['q', 'account', 'actor', 'subject']),
    ...brokenForms(['/operator/v1/alarms/acknowledge']),
    ...hostileForms(['/operator/v1/alarms/acknowledge'], [], 'x'),
  ];
  for (const { path, init } of requests) {
    const headers = { Authorization: `Bearer ${key}`, ...init?.headers };
    const { status } = await berth.operator.request(path, { ...init, headers });
    const what = [path.slice(0, 100), String(init?.body ?? '').slice(0, 100), JSON.stringify(init?.headers)];
    expect([...what, status < 500]).toEqual([...what, true]);
  }
});
