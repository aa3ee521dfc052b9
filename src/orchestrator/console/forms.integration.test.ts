import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokenForms, hostileForms, hostileReads } from '../../../test/support/http/hostile-requests.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { systemRandom } from '../../runtime/system.ts';
import { createKey } from '../accounts/accounts.ts';
import { operations } from '../operate/operations.ts';
import { pages } from './app.ts';
import { csrfOf, paths, startConsole, type Tab, type TestConsole } from './console.fixture.ts';
import { HOSTILE, putDemoFleet, STUCK } from './demo-fleet.fixture.ts';

let shown: TestConsole;
let clock: VirtualClock;
let cookie: string;
let get: Tab['get'];
let read: Tab['read'];
let post: Tab['post'];

beforeEach(async () => {
  clock = new VirtualClock();
  shown = await startConsole({ clock });
  await putDemoFleet(shown);
  ({ cookie, get, read, post } = await shown.openTab());
});
afterEach(() => shown[Symbol.asyncDispose]());

describe('a form', () => {
  const alarm = { kind: 'step_failing', subject: STUCK };
  const acknowledgedBy = async () =>
    (await shown.store.read.alarms.list()).find(({ subject }) => subject === STUCK)?.acknowledgedBy;

  it('acknowledges an alarm, in the name of who is logged in', async () => {
    const csrf = csrfOf(await read('/console/alarms'));
    const reply = await post('/console/actions/acknowledgeAlarms', { ...alarm, csrf });
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/console/alarms']);
    expect(await acknowledgedBy()).toBe('mara');
    const [entry] = await shown.store.read.audit.page({ limit: 1 });
    expect(entry).toMatchObject({ actor: 'mara', source: 'console', action: 'alarm.acknowledge' });
  });

  it('does nothing if it comes from another session, from another site or without a token', async () => {
    const csrf = csrfOf(await read('/console/alarms'));
    const other = await shown.logIn();
    const tries = [
      await post('/console/actions/acknowledgeAlarms', alarm),
      await post('/console/actions/acknowledgeAlarms', { ...alarm, csrf: `${csrf.slice(0, -1)}x` }),
      await post('/console/actions/acknowledgeAlarms', { ...alarm, csrf }, { cookie: other }),
      await post('/console/actions/acknowledgeAlarms', { ...alarm, csrf }, { 'sec-fetch-site': 'same-site' }),
      await post('/console/actions/acknowledgeAlarms', { ...alarm, csrf }, { origin: 'http://evil.example' }),
    ];
    expect(tries.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    expect(await acknowledgedBy()).toBeNull();
  });

  it('shows a dry run first, which changes nothing', async () => {
    const before = await shown.store.read.audit.page({ limit: 50 });
    for (const path of paths.filter((one) => one.includes('/actions/'))) {
      const page = await read(path);
      expect([path, page.includes('This is a dry run: nothing has changed.')]).toEqual([path, true]);
    }
    expect(await shown.store.read.audit.page({ limit: 50 })).toEqual(before);
    expect((await shown.store.read.instances.byId(STUCK))?.status).toBe('PROVISIONING');
    expect(await shown.store.read.cordons.list()).toEqual([]);
  });

  it.each(['no', 'false', '0', ''])('shows a dry run if the address says dry_run=%s, too', async (dryRun) => {
    const asked = new URLSearchParams({ instanceId: STUCK, dry_run: dryRun });
    for (const action of ['destroyInstance', 'retryInstance']) {
      const page = await read(`/console/actions/${action}?${asked}`);
      expect(page).toContain('This is a dry run: nothing has changed.');
    }
    expect((await shown.store.read.instances.byId(STUCK))?.status).toBe('PROVISIONING');
  });

  it('deletes an account with the machines shown in the dry run, and none created since', async () => {
    const { id = '' } = (await shown.store.read.credentials.accountByName('marketplace')) ?? {};
    const page = await read(`/console/actions/deleteAccount?account=${id}`);
    expect(page).toMatch(/its \d+ instances? will be deleted with all disks/);
    const csrf = csrfOf(page);
    const unseen = await post('/console/actions/deleteAccount', { account: id, csrf });
    expect([unseen.status, await unseen.text()]).toEqual([409, expect.stringMatching(/has \d+ instances/)]);
    const done = await post('/console/actions/deleteAccount', { account: id, drain: 'yes', csrf });
    expect([done.status, done.headers.get('location')]).toEqual([303, '/console/accounts']);
    expect((await shown.store.read.instances.byId(STUCK))?.status).toBe('DESTROYING');
    const [row] = await shown.store.read.audit.page({ limit: 1 });
    expect(row).toMatchObject({
      action: 'account.delete',
      source: 'console',
      subject: 'marketplace',
      outcome: 'done',
    });
  });

  it('cordons an offer for a time, and has it sold again', async () => {
    const offer = { kind: 'offer', name: 'l40s-1x' };
    const csrf = csrfOf(await read('/console/cordons'));
    await post('/console/actions/cordon', { ...offer, csrf, until: '90m', reason: HOSTILE });
    const until = clock.now() + 5_400_000;
    expect(await shown.store.read.cordons.list()).toMatchObject([
      { ...offer, until, reason: HOSTILE, by: 'mara' },
    ]);
    const page = await read('/console/cordons');
    expect(page).toContain('Remove cordon');
    expect(page).not.toContain('<script>');
    await post('/console/actions/uncordon', { ...offer, csrf });
    expect(await shown.store.read.cordons.list()).toEqual([]);
  });

  it.each(['0m', '-1h', '1e999', 'two', '2020-01-01T00:00:00Z'])(
    'cordons nothing until %s',
    async (until) => {
      const offer = { kind: 'offer', name: 'l40s-1x', until };
      const asked = await get(`/console/actions/cordon?${new URLSearchParams(offer)}`);
      const sent = await post('/console/actions/cordon', { ...offer, csrf: csrfOf(await read('/console')) });
      for (const reply of [asked, sent])
        expect([reply.status, await reply.text()]).toEqual([
          409,
          expect.stringMatching(/give (minutes, hours or days|a later end)/),
        ]);
      expect(await shown.store.read.cordons.list()).toEqual([]);
    },
  );

  it('has a field for each input of its action', async () => {
    const page = await read('/console/cordons?kind=region&name=eu-helsinki');
    const form = /<form [^>]*id="planMaintenance"[\s\S]*?<\/form>/.exec(page)?.[0] ?? '';
    const fields = [...form.matchAll(/<(?:input|select) [^>]*name="(\w+)"/g)].map(([, name]) => name);
    expect(fields).toEqual(['kind', 'name', 'platform', 'until', 'reason', 'from']);
    expect(form).toContain('<option selected>region</option>');
    expect(form).toMatch(/name="name" value="eu-helsinki"[^>]* required>/);
    expect(form).toMatch(/name="until" value=""[^>]* >/);
    expect(form).toContain('<option value="l40s-1x"></option>');
  });

  it('creates an account, and revokes a key after a page that says what it does', async () => {
    const csrf = csrfOf(await read('/console/accounts'));
    await post('/console/actions/createAccount', { name: 'initech', csrf });
    const account = await shown.store.read.credentials.accountByName('initech');
    const { record } = await createKey({ ...shown, clock, random: systemRandom }, 'initech', {
      label: undefined,
      expiresAt: null,
    });
    expect(await read('/console/keys')).toContain(`/console/actions/revokeKey?keyId=${record.id}`);
    expect(await read(`/console/actions/revokeKey?keyId=${record.id}`)).toContain(
      'its clients are answered with 401',
    );
    await post('/console/actions/revokeKey', { keyId: record.id, csrf });
    const [key] = await shown.store.read.credentials.listKeys(account?.id);
    expect(key).toMatchObject({ id: record.id, revokedAt: clock.now() });
    const rows = await shown.store.read.audit.page({ limit: 2 });
    expect(rows.map(({ action }) => action)).toEqual(['key.revoke', 'account.create']);
  });

  it('with an invalid body is a 400 that says what is expected', async () => {
    const csrf = csrfOf(await read('/console'));
    const headers = { cookie, 'content-type': 'multipart/form-data' };
    const reply = await shown.request('/console/logout', { method: 'POST', headers, body: `csrf=${csrf}` });
    expect([reply.status, await reply.text()]).toEqual([
      400,
      expect.stringContaining('expected Content-Type application/x-www-form-urlencoded'),
    ]);
  });

  it('plans maintenance that clients see, and cancels it', async () => {
    const csrf = csrfOf(await read('/console/cordons'));
    const region = { kind: 'region', name: 'eu-frankfurt', csrf };
    await post('/console/actions/planMaintenance', {
      ...region,
      from: '1h',
      until: '2h',
      reason: 'new switches',
    });
    const [planned] = await shown.store.read.cordons.list();
    expect(planned).toMatchObject({ name: 'eu-frankfurt', isMaintenance: true });
    await post('/console/actions/cancelMaintenance', { csrf, maintenanceId: planned?.id ?? '' });
    expect(await shown.store.read.cordons.list()).toEqual([]);
  });

  it('retries a step now, and removes an instance until the platform proves that it is gone', async () => {
    const csrf = csrfOf(await read('/console'));
    await post('/console/actions/retryInstance', { csrf, instanceId: STUCK });
    expect((await shown.store.read.work.of(STUCK))?.notBefore).toBe(clock.now());
    await post('/console/actions/destroyInstance', {
      csrf,
      instanceId: STUCK,
      reason: 'its tenant asked by phone',
    });
    expect((await shown.store.read.instances.byId(STUCK))?.status).toBe('DESTROYING');
    const entries = await shown.store.read.audit.page({ limit: 2 });
    expect(entries.map(({ action, actor, source }) => [action, actor, source])).toEqual([
      ['instance.destroy', 'mara', 'console'],
      ['instance.retry', 'mara', 'console'],
    ]);
  });

  it('accepts no losses of a platform that does not answer, and says why', async () => {
    const csrf = csrfOf(await read('/console'));
    for (const reply of [
      await get('/console/actions/acceptLosses?platform=west'),
      await post('/console/actions/acceptLosses', { csrf, platform: 'west' }),
    ])
      expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('does not answer')]);
  });

  it('accepts losses only while the platform is frozen, however old the page is [late-acceptance]', async () => {
    const alarm = { kind: 'platform_suspect', subject: 'default', platform: 'default' } as const;
    const text = '2 of 2 machines are missing';
    const seen = { since: clock.now(), lastSeenAt: clock.now(), acknowledgedBy: null, note: null };
    await shown.store.transact((tx) => tx.alarms.put({ ...alarm, text, ...seen }));
    const page = await read('/console/actions/acceptLosses?platform=default');
    expect(page).toContain(text);
    await shown.store.transact((tx) => tx.alarms.end(alarm, clock.now()));
    const fields = { platform: 'default', csrf: csrfOf(page) };
    const late = await post('/console/actions/acceptLosses', fields);
    expect([late.status, await late.text()]).toEqual([409, expect.stringContaining('default is not frozen')]);
    expect((await post('/console/actions/acceptLosses', { csrf: fields.csrf })).status).toBe(409);
    expect(await shown.store.read.marks.get('losses_accepted_until')).toBeNull();
  });

  it('shows the reason when it is refused', async () => {
    const csrf = csrfOf(await read('/console/alarms'));
    const reply = await post('/console/actions/acknowledgeAlarms', {
      kind: 'clock_skew',
      subject: 'x',
      csrf,
    });
    expect(reply.status).toBe(409);
    expect(await reply.text()).toContain('No alarm clock_skew x is open');
  });

  it('is not read when it is too long', async () => {
    expect((await post('/console/logout', { csrf: 'x'.repeat(70_000) })).status).toBe(413);
  });
});

it('answers no hostile request with a 5xx or an error line [console-hostile]', async () => {
  const csrf = csrfOf(await read('/console'));
  const names = [
    'id',
    'name',
    'kind',
    'platform',
    'q',
    'status',
    'region',
    'offer',
    'host',
    'account',
    'label',
    'reason',
    'instanceId',
    'maintenanceId',
    'until',
  ];
  const numbers = ['hours', 'after', 'before', 'since', 'limit'];
  const all = [...names, ...numbers, 'action', 'actor', 'subject', 'show', 'next', 'order'];
  const pagePaths = pages.map(([path]) => `/console${path}`);
  const actions = operations
    .filter(({ form }) => form !== undefined)
    .map(({ name }) => `/console/actions/${name}`);
  const formPaths = [...actions, '/console/login', '/console/none'];
  const cordon = 'kind=offer&name=l40s-1x';
  const requests = [
    ...hostileReads([...pagePaths, '/console/assets/:name', '/console/login', '/console/:none'], all),
    ...hostileReads(actions, [...names, ...numbers]),
    ...hostileReads([`/console/actions/cordon?${cordon}`], ['hours', 'reason', 'platform']),
    ...brokenForms(['/console/login', '/console/logout', '/console/none']),
    ...hostileForms(formPaths, all, csrf),
    ...hostileForms(['/console/actions/cordon'], ['hours', 'reason'], `${csrf}&${cordon}`),
    ...hostileForms(['/console/actions/planMaintenance'], ['hours', 'reason'], `${csrf}&${cordon}`),
    ...hostileForms(['/console/logout'], all, 'x'),
  ];
  for (const { path, init } of requests) {
    const { status } = await shown.request(path, { ...init, headers: { cookie, ...init?.headers } });
    const what = [path.slice(0, 100), String(init?.body ?? '').slice(0, 100), JSON.stringify(init?.headers)];
    expect([...what, status < 500, shown.errors]).toEqual([...what, true, []]);
  }
});
