import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { brokenForms, hostileForms, hostileReads } from '../../../test/support/http/hostile-requests.ts';
import { startTestOrchestrator } from '../../../test/support/orchestrator.ts';
import { SESSION_MS } from '../../operators/console/sessions.ts';
import { revokeOperatorKey } from '../../operators/keys.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { operations } from '../operate/operations.ts';
import { startConsole, type TestConsole } from './console.fixture.ts';
import { FAILED, HOSTILE, LINGERING, putDemoFleet, STUCK } from './demo-fleet.fixture.ts';
import { pages } from './pages/pages.ts';

let shown: TestConsole;
let clock: VirtualClock;
let cookie: string;

beforeEach(async () => {
  clock = new VirtualClock();
  shown = await startConsole({ clock });
  await putDemoFleet(shown);
  cookie = await shown.logIn();
});
afterEach(() => shown[Symbol.asyncDispose]());

const get = (path: string, headers: Record<string, string> = {}) =>
  shown.request(path, { headers: { cookie, ...headers } });
const read = async (path: string) => (await get(path)).text();
const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  shown.request(path, { method: 'POST', headers: { cookie, ...headers }, body: new URLSearchParams(fields) });
const csrfOf = (page: string): string => /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
const toConfirm = {
  retryInstance: `instanceId=${STUCK}`,
  destroyInstance: `instanceId=${STUCK}`,
  cordon: 'kind=offer&name=l40s-1x',
  planMaintenance: 'kind=offer&name=l40s-1x',
  acceptLosses: 'platform=west',
  disableAccount: 'account=marketplace',
  deleteAccount: 'account=marketplace',
};
const paths = [
  ...pages.map(([path]) => `/console${path === '/' ? '' : path.replace(':id', STUCK)}`),
  ...Object.entries(toConfirm).map(([action, query]) => `/console/actions/${action}?${query}`),
];

it('logs each form and each refusal with operator, key and address, but no page views [console-log]', async () => {
  shown.infos.length = 0;
  await get('/console/accounts');
  await get('/console/none');
  await post('/console/actions/retryInstance', { instanceId: STUCK });
  const csrf = csrfOf(await read('/console'));
  await post('/console/actions/retryInstance', { instanceId: STUCK, csrf });
  await shown.request('/console/events');
  const who = { operator: 'mara', key: shown.keyId, address: expect.any(String) };
  expect(shown.infos).toEqual([
    { method: 'GET', path: '/console/none', status: 404, ...who },
    { method: 'POST', path: '/console/actions/retryInstance', status: 403, ...who },
    { method: 'POST', path: '/console/actions/retryInstance', status: 303, ...who },
    { method: 'GET', path: '/console/events', status: 401, address: who.address },
  ]);
});

describe('without a session', () => {
  it('no page is shown, and no page name is revealed', async () => {
    for (const path of [...paths, '/console/none']) {
      const reply = await shown.request(path);
      expect([path, reply.status, await reply.text()]).toEqual([path, 303, '']);
    }
    expect((await shown.request(`/console/instances?q=a%26b`)).headers.get('location')).toBe(
      '/console/login?next=%2Fconsole%2Finstances%3Fq%3Da%2526b',
    );
  });

  it('the script that reads a page again gets 401, and so does a stream', async () => {
    const refresh = await shown.request('/console', { headers: { 'x-console-refresh': '1' } });
    expect(refresh.status).toBe(401);
    expect((await shown.request('/console/events')).status).toBe(401);
  });

  it('a form does nothing', async () => {
    const body = new URLSearchParams({ kind: 'step_failing', subject: STUCK });
    const reply = await shown.request('/console/actions/acknowledgeAlarms', { method: 'POST', body });
    expect(reply.status).toBe(303);
    expect(
      (await shown.store.read.alarms.list()).filter(({ acknowledgedBy }) => acknowledgedBy),
    ).toHaveLength(1);
  });
});

describe('the login', () => {
  const logIn = (key: string, next = '', headers: Record<string, string> = {}) =>
    shown.request('/console/login', {
      method: 'POST',
      headers,
      body: new URLSearchParams({ key, next }),
    });

  it('gives a cookie that no script reads and no other site sends', async () => {
    const plain = (await logIn(shown.key)).headers.get('set-cookie');
    expect(plain).toMatch(
      /^berth_console_0=[\w-]{43}; Max-Age=43200; Path=\/console; HttpOnly; SameSite=Strict$/,
    );
    const behindTls = await logIn(shown.key, '', { 'x-forwarded-proto': 'https' });
    expect(behindTls.headers.get('set-cookie')).toContain('; Secure');
  });

  it('is written to the audit log', async () => {
    const [entry] = await shown.store.read.audit.page({ limit: 1 });
    expect(entry).toMatchObject({
      actor: 'mara',
      source: 'console',
      action: 'console.login',
      outcome: 'done',
    });
  });

  it.each(['', 'berth_something', 'x'.repeat(5_000)])(
    'refuses what is no operator key: %.20s',
    async (key) => {
      const reply = await logIn(key);
      expect([reply.status, reply.headers.get('set-cookie')]).toEqual([401, null]);
    },
  );

  it('refuses a form of another site', async () => {
    const reply = await logIn(shown.key, '', { 'sec-fetch-site': 'cross-site' });
    expect([reply.status, reply.headers.get('set-cookie')]).toEqual([403, null]);
    expect((await logIn(shown.key, '', { origin: 'https://evil.example' })).status).toBe(403);
  });

  it.each([
    ['/console/alarms?x=1', '/console/alarms?x=1'],
    ['//evil.example', '/console'],
    ['/console//evil.example', '/console'],
    ['https://evil.example/console', '/console'],
    ['/console\\evil', '/console'],
    ['/metrics', '/console'],
    ['/consoles', '/console'],
  ])('then shows a page of the console and no other: %s', async (next, location) => {
    expect((await logIn(shown.key, next)).headers.get('location')).toBe(location);
  });
});

describe('a session', () => {
  it('ends when its operator signs out', async () => {
    const csrf = csrfOf(await read('/console'));
    expect((await post('/console/logout', { csrf })).headers.get('location')).toBe('/console/login');
    expect((await get('/console')).status).toBe(303);
  });

  it('ends with its key', async () => {
    expect((await get('/console')).status).toBe(200);
    await revokeOperatorKey(shown, shown.keyId);
    expect((await get('/console')).status).toBe(303);
  });

  it('ends after twelve hours', async () => {
    clock.step(SESSION_MS - 1);
    expect((await get('/console')).status).toBe(200);
    clock.step(1);
    expect((await get('/console')).status).toBe(303);
  });
});

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

  it('disables an account with the machines shown in the dry run, and none created since', async () => {
    const { id = '' } = (await shown.store.read.credentials.accountByName('marketplace')) ?? {};
    const page = await read(`/console/actions/disableAccount?account=${id}`);
    expect(page).toMatch(/its \d+ instances? will be deleted with all disks/);
    const csrf = csrfOf(page);
    const unseen = await post('/console/actions/disableAccount', { account: id, csrf });
    expect([unseen.status, await unseen.text()]).toEqual([409, expect.stringMatching(/has \d+ instances/)]);
    const done = await post('/console/actions/disableAccount', { account: id, drain: 'yes', csrf });
    expect([done.status, done.headers.get('location')]).toEqual([303, '/console/accounts']);
    expect((await shown.store.read.instances.byId(STUCK))?.status).toBe('DESTROYING');
    const [row] = await shown.store.read.audit.page({ limit: 1 });
    expect(row).toMatchObject({
      action: 'account.disable',
      source: 'console',
      subject: 'marketplace',
      outcome: 'done',
    });
    await post('/console/actions/deleteAccount', { account: id, drain: 'yes', csrf });
    expect(await shown.store.read.audit.page({ limit: 1 })).toMatchObject([{ action: 'account.delete' }]);
  });

  it('cordons an offer for some hours, and has it sold again', async () => {
    const offer = { kind: 'offer', name: 'l40s-1x' };
    const csrf = csrfOf(await read('/console/cordons'));
    await post('/console/actions/cordon', { ...offer, csrf, hours: '1.5', reason: HOSTILE });
    const until = clock.now() + 5_400_000;
    expect(await shown.store.read.cordons.list()).toMatchObject([
      { ...offer, until, reason: HOSTILE, by: 'mara' },
    ]);
    const page = await read('/console/cordons');
    expect(page).toContain('Sell again');
    expect(page).not.toContain('<script>');
    await post('/console/actions/uncordon', { ...offer, csrf });
    expect(await shown.store.read.cordons.list()).toEqual([]);
  });

  it.each(['0', '-1', '1e999', 'two', '9000'])('cordons nothing for %s hours', async (hours) => {
    const offer = { kind: 'offer', name: 'l40s-1x', hours };
    const asked = await get(`/console/actions/cordon?${new URLSearchParams(offer)}`);
    const sent = await post('/console/actions/cordon', { ...offer, csrf: csrfOf(await read('/console')) });
    for (const reply of [asked, sent])
      expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('at most 8760')]);
    expect(await shown.store.read.cordons.list()).toEqual([]);
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
    await post('/console/actions/planMaintenance', { ...region, hours: '2', reason: 'new switches' });
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
    const reply = await post('/console/actions/acceptLosses', { csrf, platform: 'west' });
    expect([reply.status, await reply.text()]).toEqual([409, expect.stringContaining('does not answer')]);
  });

  it('shows the reason when it is refused', async () => {
    const csrf = csrfOf(await read('/console/alarms'));
    const reply = await post('/console/actions/acknowledgeAlarms', {
      kind: 'clock_skew',
      subject: 'x',
      csrf,
    });
    expect(reply.status).toBe(409);
    expect(await reply.text()).toContain('No alarm clock_skew x is open.');
  });

  it('is not read when it is too long', async () => {
    expect((await post('/console/logout', { csrf: 'x'.repeat(70_000) })).status).toBe(413);
  });
});

it('the doctor page shows the findings of this server when an operator starts a check [console-doctor]', async () => {
  const page = await read('/console/doctor');
  expect(page).toContain('not since its start');
  expect((await post('/console/actions/runDoctor', { csrf: csrfOf(page) })).headers.get('location')).toBe(
    '/console/doctor',
  );
  const found = await read('/console/doctor');
  expect(found).toContain('its pool &lt;images&gt; has 1.2 GB free');
  expect(found.indexOf('Make room.')).toBeLessThan(found.indexOf('it agrees with'));
});

it('the bars of the fleet are shares of what the catalog has, also while a platform is frozen [console-frozen-bars]', async () => {
  const unitsOf = (offer = '', place = '') =>
    shown.catalog.offers.get(offer)?.placements.find(({ region }) => region === place)?.units ?? 0;
  const bars = (await read('/console')).split('<tr>').flatMap((row) => {
    const [, offer, region] =
      /\?offer=([\w-]+)".* data-label="Region" class=""><span>([\w-]+)</.exec(row) ?? [];
    const label = /"(\d+) sold, (\d+) stopped, (\d+) free, (\d+) not for sale"/.exec(row);
    if (label === null) return [];
    const [sold = 0, stopped = 0, free = 0, withheld = 0] = label.slice(1).map(Number);
    const widths = [...row.matchAll(/ width="([\d.]+)"/g)].map(([, width]) => Number(width));
    return [{ offer, units: unitsOf(offer, region), taken: sold + stopped, free, withheld, widths }];
  });
  expect(bars.length).toBeGreaterThan(0);
  for (const { offer, units, taken, free, withheld } of bars)
    expect([offer, taken + free + withheld]).toEqual([offer, Math.max(units, taken)]);
  // Offers of `west`, which is down, have no units for sale.
  const frozen = bars.filter(({ offer = '' }) => shown.catalog.offers.get(offer)?.platform === 'west');
  expect(frozen.filter(({ free }) => free > 0)).toEqual([]);
  const [{ units, taken, widths } = { units: 0, taken: 0, widths: [] }] = frozen.filter(
    (bar) => bar.taken > 0 && bar.units > bar.taken,
  );
  const withheld = (100 * (units - taken)) / units;
  expect(widths[3]).toBeCloseTo(withheld, 1);
  expect((widths[0] ?? 0) + (widths[1] ?? 0)).toBeCloseTo(100 - withheld, 1);
});

it('hosts are in the order of their numbers [console-host-order]', async () => {
  const page = await read('/console/platforms');
  const hosts = [...page.matchAll(/host=(gpu-host-\d+)"/g)].map(([, host]) => host);
  expect(hosts.slice(0, 10)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 12].map((number) => `gpu-host-${number}`));
});

it('menus and alarms of one moment are in the order of their names and numbers [console-name-order]', async () => {
  const now = clock.now();
  await shown.store.transact(async (tx) => {
    for (const number of [12, 2]) {
      const account = { id: `acct-${number}`, name: `team-${number}`, passwordHash: null, createdAt: now };
      await tx.credentials.insertAccount(account);
      const alarm = {
        kind: 'host_unknown',
        subject: `rack-${number}`,
        platform: 'default',
        text: 'gone',
      } as const;
      await tx.alarms.put({ ...alarm, since: now, lastSeenAt: now, acknowledgedBy: null });
    }
  });
  const shownAt = async (path: string, pattern: RegExp) =>
    [...(await read(path)).matchAll(pattern)].map(([, name]) => name);
  const menus = await shownAt('/console/instances', /<option value="([^"]+)"/g);
  const sorted = (names: Iterable<string>) =>
    [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const { offers, regions } = shown.catalog;
  const inMenus = (known: { has: (name: string) => boolean }) => menus.filter((name = '') => known.has(name));
  expect(inMenus(offers)).toEqual(sorted(offers.keys()));
  expect(inMenus(regions)).toEqual(sorted(regions.keys()));
  expect(menus.filter((name) => name?.startsWith('acct-'))).toEqual([
    'acct-0000000000000000000a',
    'acct-0000000000000000000b',
    'acct-2',
    'acct-12',
  ]);
  const suggested = await shownAt('/console/cordons', /<option value="([^"]+)"><\/option>/g);
  expect(suggested).toEqual([...sorted(offers.keys()), ...sorted(regions.keys()), 'default', 'west']);
  expect(await shownAt('/console/alarms', />(?:<bdi>)?(rack-\d+)</g)).toEqual(['rack-2', 'rack-12']);
});

it('names are cut at 255 characters [console-long-names]', async () => {
  const name = `${'n'.repeat(253)}😀${'n'.repeat(50)}`;
  await shown.store.transact(async (tx) => {
    const record = await tx.instances.byId(STUCK);
    if (record !== null) await tx.instances.update({ ...record, name });
  });
  for (const path of [`/console/instances?q=${STUCK}`, `/console/instances/${STUCK}`]) {
    const page = await read(path);
    expect(page).toContain(`<bdi>${'n'.repeat(253)}…</bdi>`);
    expect(page).not.toContain('n'.repeat(254));
  }
});

it('the platforms page shows each host with its devices, silent hosts and quarantined devices [console-hosts]', async () => {
  const page = await read('/console/platforms');
  expect(page).toContain('it did not come back from its reset &lt;at once&gt;');
  expect(page).toContain('<b>quarantined</b>');
  expect(page).toContain('gpu-host-12 does not answer within 5000 ms');
  expect(page).toContain('104 <span class="soft">of 192</span>');
  expect(page).toContain('/console/instances?q=berth-inst-1');
});

describe('every page', () => {
  it('has a strict content security policy, and nothing that it would block', async () => {
    for (const path of [...paths, '/console/login', '/console/none']) {
      const reply = await get(path);
      const page = await reply.text();
      const policy = reply.headers.get('content-security-policy');
      expect([path, policy]).toEqual([
        path,
        expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'/),
      ]);
      expect(policy).not.toContain('unsafe');
      expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
      expect(reply.headers.get('cache-control')).toBe('no-store');
      expect([
        path,
        page.match(/<script(?! type="module" src="\/console\/)|<style|\sstyle=|<[^>]* on\w+=/g),
      ]).toEqual([path, null]);
    }
  });

  it('escapes text from tenants and platforms', async () => {
    await shown.store.transact(async (tx) => {
      const record = await tx.instances.byId(STUCK);
      if (record !== null)
        await tx.instances.update({ ...record, name: HOSTILE, error: HOSTILE, host: HOSTILE });
      const alarm = { kind: 'step_failing', platform: 'default', since: 1, lastSeenAt: 1 } as const;
      await tx.alarms.put({ ...alarm, subject: HOSTILE, text: HOSTILE, acknowledgedBy: null });
    });
    for (const path of [...paths, `/console/instances?q=${encodeURIComponent(HOSTILE)}`]) {
      const page = await read(path);
      expect([path, page.includes('<img'), page.includes('<script>')]).toEqual([path, false, false]);
    }
    expect(await read('/console/instances')).toContain('&lt;script&gt;alert(2)&lt;/script&gt;');
  });

  it('shows bidirectional control characters as escapes', async () => {
    await shown.store.transact(async (tx) => {
      const record = await tx.instances.byId(STUCK);
      if (record !== null) await tx.instances.update({ ...record, name: 'a\u202eb' });
    });
    expect(await read(`/console/instances/${STUCK}`)).toContain('<bdi>a\\u202eb</bdi>');
  });

  it('shows a hostile error of a platform as escapes: in the history of its instance and in an alarm', async () => {
    const evil = '\u001b[2J\u009b31m\u202eevil\u2066\u0007';
    await shown.store.transact(async (tx) => {
      const call = { call: 'create', outcome: 'unknown', tookMs: 1, detail: `call ${evil}` };
      const event = {
        instanceId: STUCK,
        at: 3,
        cause: 'create',
        attempt: 1,
        next: 'again',
        tookMs: 1,
      } as const;
      const texts = { detail: `step ${evil}`, console: `tail ${evil}`, calls: [call] };
      await tx.history.step({ ...event, ...texts }, true);
      const alarm = { kind: 'step_failing', platform: 'default', since: 1, lastSeenAt: 1 } as const;
      await tx.alarms.put({ ...alarm, subject: STUCK, text: `alarm ${evil}`, acknowledgedBy: null });
    });
    const pages = (await read(`/console/instances/${STUCK}`)) + (await read('/console/alarms'));
    for (const where of ['call', 'step', 'tail', 'alarm']) expect(pages).toContain(`${where} \\u001b[2J`);
    expect(pages).not.toMatch(/(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u);
  });

  it('says so, and what to do, while the database does not answer', async () => {
    await shown.store.close();
    const reply = await get('/console');
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining('df -h')]);
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

describe('the instances', () => {
  const ids = (page: string) =>
    [...page.matchAll(/href="\/console\/instances\/(inst-[0-9a-f]+)"/g)].map(([, id]) => id);

  it('are listed page by page, each once', async () => {
    const seen: (string | undefined)[] = [];
    let path: string | undefined = '/console/instances';
    while (path !== undefined) {
      const page = await read(path);
      seen.push(...ids(page));
      path = /rel="next" href="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toHaveLength(82);
  });

  it('are found by a name, an address and a status', async () => {
    expect(ids(await read('/console/instances?q=Train-LARGE'))).toEqual([STUCK]);
    expect(ids(await read(`/console/instances?q=${FAILED}`))).toEqual([FAILED]);
    expect(ids(await read('/console/instances?status=DESTROYING'))).toEqual([LINGERING]);
    expect(await read('/console/instances?q=%25')).toContain('No instances found.');
  });

  it('show why they are stuck, and what to do', async () => {
    const page = await read(`/console/instances/${STUCK}`);
    expect(page).toContain('Stuck at “verify”, to verify its SSH: 14 attempts have failed');
    expect(page).toContain('The keys were not injected: check cloud-init');
  });

  it('have a dossier if they failed', async () => {
    const page = await read(`/console/instances/${FAILED}`);
    expect(page).toContain('Failure dossier');
    expect(page).toContain('No space left on device');
  });

  it('are not found under an unknown id', async () => {
    expect((await get('/console/instances/inst-none')).status).toBe(404);
  });
});

it('the console is on the admin listener, not on the API listener', async () => {
  await using orchestrator = await startTestOrchestrator();
  const { status, headers } = await orchestrator.admin.fetch('/');
  expect([status, headers.get('location')]).toEqual([302, '/console']);
  expect((await orchestrator.admin.fetch('/console')).status).toBe(303);
  const login = await (await orchestrator.admin.fetch('/console/login')).text();
  expect(login).toContain('<code>berth operators create NAME</code>');
  expect(login).toContain(
    'in a clone of the repository, <code>npm run -s berth -- operators create NAME</code>',
  );
  expect((await orchestrator.fetch('/console/login')).status).toBe(404);
});
