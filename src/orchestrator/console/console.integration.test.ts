import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestOrchestrator } from '../../../test/support/orchestrator.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { SESSION_MS } from '../../operator-kit/console/sessions.ts';
import { createOperatorKey, revokeOperatorKey } from '../../operator-kit/keys.ts';
import { systemRandom } from '../../runtime/system.ts';
import { csrfOf, paths, startConsole, type Tab, type TestConsole } from './console.fixture.ts';
import { putDemoFigures } from './demo-figures.fixture.ts';
import { FAILED, HOSTILE, LINGERING, putDemoFleet, STUCK } from './demo-fleet.fixture.ts';

let shown: TestConsole;
let clock: VirtualClock;
let tab: Tab;
let get: Tab['get'];
let read: Tab['read'];
let post: Tab['post'];

beforeEach(async () => {
  clock = new VirtualClock();
  shown = await startConsole({ clock });
  await putDemoFleet(shown);
  tab = await shown.openTab();
  ({ get, read, post } = tab);
});
afterEach(() => shown[Symbol.asyncDispose]());

it('logs each form and each refusal with operator, key and address, but no page views [console-log]', async () => {
  shown.infos.length = 0;
  await get('/console/accounts');
  await get('/console/none');
  await post('/console/actions/retryInstance', { instanceId: STUCK });
  const csrf = csrfOf(await read('/console'));
  await post('/console/actions/retryInstance', { instanceId: STUCK, csrf });
  await shown.request('/console', { headers: { 'x-console-refresh': '1' } });
  const who = { operator: 'mara', key: shown.keyId, address: expect.any(String) };
  expect(shown.infos).toEqual([
    { method: 'GET', path: '/console/none', status: 404, ...who },
    { method: 'POST', path: '/console/actions/retryInstance', status: 403, ...who },
    { method: 'POST', path: '/console/actions/retryInstance', status: 303, ...who },
    { method: 'GET', path: '/console', status: 401, address: who.address },
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

  it('the script that reads a page again gets 401', async () => {
    const refresh = await shown.request('/console', { headers: { 'x-console-refresh': '1' } });
    expect(refresh.status).toBe(401);
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
    ['/metrics', '/console'],
    ['/console/../metrics', '/console'],
    ['/console/%2E%2e/operator/v1', '/console'],
    ['/console/..\\..//evil.example', '/console'],
    ['/console/\t..//evil.example', '/console'],
    ['/console/alarms/../work', '/console/work'],
    ['/consoles', '/console'],
  ])('then shows a page of the console and no other: %s', async (next, location) => {
    expect((await logIn(shown.key, next)).headers.get('location')).toBe(location);
  });
});

it.each([
  ['its operator signs out', async () => post('/console/logout', { csrf: csrfOf(await read('/console')) })],
  ['its key is revoked', () => revokeOperatorKey(shown, shown.keyId)],
  ['its twelve hours are over', () => clock.step(1)],
])(
  'a session is known to every server, and ends on all of them when %s [console-sessions]',
  async (_when, end) => {
    const { cookie, get } = tab;
    const statuses = async () => {
      const replies = [get('/console'), shown.requestElsewhere('/console', { headers: { cookie } })];
      return (await Promise.all(replies)).map(({ status }) => status);
    };
    clock.step(SESSION_MS - 1);
    expect(await statuses()).toEqual([200, 200]);
    await end();
    expect(await statuses()).toEqual([303, 303]);
  },
);

it('charts show the figures of the period that the address names, on each page that has some, and as CSV', async () => {
  await putDemoFigures(shown);
  const headingsOf = async (path: string) =>
    [...(await read(path)).matchAll(/<h2>([^<]*, (?:24 hours|7 days|90 days)): ([^<]*)<\/h2>/g)].map(
      ([, title, summary = '']) => [title, /^(none|nothing)/.test(summary)],
    );
  const of = (period: string, ...titles: string[]) => titles.map((title) => [`${title}, ${period}`, false]);
  expect((await headingsOf('/console')).slice(0, 5)).toEqual(
    of('7 days', 'Units', 'Earned', 'Creates', 'Time to ONLINE', 'Failures by cause'),
  );
  expect(await headingsOf('/console/capacity?range=24h')).toEqual(of('24 hours', 'Units', 'Earned'));
  const ofPlatform = of('90 days', 'Answers of the platform', 'Duration of calls');
  expect(await headingsOf('/console/platforms/default?range=90d')).toEqual(ofPlatform);
  expect((await headingsOf('/console/offers/h100-sxm-1x')).slice(0, 2)).toEqual(
    of('7 days', 'Units', 'Earned'),
  );
  expect(await read('/console/offers/gone')).toContain('not in the catalog');
  const csv = await get('/console/figures.csv?figure=units&range=24h&offer=h100-sxm-1x');
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  expect((await csv.text()).split('\n')[0]).toBe(
    'at,sold,in_repair,not_for_sale,free,units,sold_percent,stopped',
  );
  expect((await get('/console/figures.csv?figure=none')).status).toBe(404);
  expect((await shown.request('/console/figures.csv')).status).toBe(303);
});

it('the bars of the fleet are shares of what the catalog has, also while a platform is frozen [console-frozen-bars]', async () => {
  const unitsOf = (offer = '', place = '') =>
    shown.catalog.offers.get(offer)?.placements.find(({ region }) => region === place)?.units ?? 0;
  const bars = (await read('/console')).split('<tr>').flatMap((row) => {
    const [, offer, region] =
      /\/offers\/([\w-]+)".* data-label="Region" class=""><span>([\w-]+)</.exec(row) ?? [];
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
  const page = await read('/console/platforms/default');
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
      await tx.alarms.put({ ...alarm, since: now, lastSeenAt: now, acknowledgedBy: null, note: null });
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
  const known = offers.size + regions.size + 2;
  expect(suggested.slice(0, known)).toEqual([
    ...sorted(offers.keys()),
    ...sorted(regions.keys()),
    'default',
    'west',
  ]);
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

it('the work and an instance show what the platform is doing, and since when that is overdue', async () => {
  const work = await read('/console/work');
  expect(work).toContain('<bdi>deleting &lt;the disk&gt;</bdi></span><span class="why">begun <time');
  expect(work).toMatch(/due <span class="badge bad"><time [^>]*datetime="2026-11-20T23:20:00.000Z"/);
  const instance = await read(`/console/instances/${LINGERING}`);
  expect(instance).toContain('<dt>Phase</dt><dd><bdi>deleting &lt;the disk&gt;</bdi></dd>');
  expect(instance).toMatch(/<dt>Phase due<\/dt><dd><span class="badge bad"><time /);
});

it('a platform has a page with the findings of berth doctor and their remedies [console-doctor]', async () => {
  expect(await read('/console/platforms/default')).toContain('href="/console/platforms/default/check"');
  const page = await read('/console/platforms/default/check');
  expect(page).toMatch(/badge bad"><bdi>broken<[\s\S]*KVM on host kvm-2[\s\S]*Load kvm_intel or kvm_amd\./);
  expect(page).toContain('libvirt has no &lt;KVM&gt;');
  expect((await tab.get('/console/platforms/elsewhere/check')).status).toBe(404);
});

it('the page of a platform shows each host with its devices, silent hosts and quarantined devices [console-hosts]', async () => {
  const page = await read('/console/platforms/default');
  expect(page).toContain('it did not come back from its reset &lt;at once&gt;');
  expect(page).toContain('<span class="badge bad"><bdi>quarantined</bdi></span>');
  expect(page).toContain('gpu-host-12 does not answer within 5000 ms');
  expect(page).toContain('<bdi>104 of 192</bdi>');
  expect(page).toContain('/console/instances?q=berth-inst-1');
  expect(page).toContain('<dt>Limited by</dt><dd><bdi>quota: cores 40 of 40 &lt;now&gt;</bdi></dd>');
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
      await tx.alarms.put({ ...alarm, subject: HOSTILE, text: HOSTILE, acknowledgedBy: null, note: null });
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
      await tx.history.step({ ...event, ...texts }, 'row');
      const alarm = { kind: 'step_failing', platform: 'default', since: 1, lastSeenAt: 1 } as const;
      await tx.alarms.put({
        ...alarm,
        subject: STUCK,
        text: `alarm ${evil}`,
        acknowledgedBy: null,
        note: null,
      });
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
    expect(await read('/console/instances?q=%25')).toContain('There is no such instance.');
  });

  it('show their exact price, why they are stuck, and what to do', async () => {
    const page = await read(`/console/instances/${STUCK}`);
    expect(page).toContain('Stuck at “verify”, to verify its SSH: 14 attempts have failed');
    expect(page).toContain('The keys were not injected: check cloud-init');
    expect(page).toContain('<dt>Per hour</dt><dd><bdi>$2.489</bdi></dd>');
    expect(page).toContain('5 equal failures in between');
  });

  it('show the end of their console if they failed', async () => {
    const page = await read(`/console/instances/${FAILED}`);
    expect(page).toContain('Last lines of its console');
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

describe('keys', () => {
  it('are made in the console by an admin who has just signed in, and shown once [keys-in-console]', async () => {
    const form = await read('/console/operator-keys');
    expect(form).toContain('<select name="role"><option>viewer</option>');
    expect(form).toContain('<option selected>admin</option>');
    const csrf = csrfOf(form);
    const made = await post('/console/actions/createOperatorKey', { csrf, name: 'ann', role: 'viewer' });
    const once = await made.text();
    const [, key = ''] = /<pre>(berthop_\S+)<\/pre>/.exec(once) ?? [];
    // The script would read the page again, which ends with another key.
    expect(once).not.toContain('data-live');
    expect([made.status, made.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const theirs = await shown.openTab(key);
    expect((await theirs.get('/console/instances')).status).toBe(200);
    expect(await read('/console/operator-keys')).not.toContain(key);
    clock.step(10 * 60_000);
    const late = await post('/console/actions/createOperatorKey', { csrf, name: 'bob', role: 'admin' });
    expect([late.status, late.headers.get('location')]).toEqual([
      303,
      '/console/login?again=1&next=%2Fconsole%2Foperator-keys',
    ]);
    expect(await (await get(late.headers.get('location') ?? '')).text()).toContain('Sign in again');
    const names = (await shown.store.read.operatorKeys.list()).map(({ name }) => name);
    expect(names.sort()).toEqual(['ann', 'mara']);
  });

  it('of a viewer open every page, without the buttons, and change nothing [viewer-in-console]', async () => {
    const { key } = await createOperatorKey(
      { ...shown, random: systemRandom },
      { name: 'vera', role: 'viewer' },
    );
    const theirs = await shown.openTab(key);
    for (const path of paths) {
      const { status } = await theirs.get(path);
      expect([path, status]).toEqual([path, path.includes('/actions/') ? 409 : 200]);
    }
    const page = await theirs.read('/console/alarms');
    expect(page).not.toContain('acknowledgeAlarms');
    const refused = await theirs.post('/console/actions/retryInstance', {
      csrf: csrfOf(page),
      instanceId: STUCK,
    });
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('the role viewer')]);
    const [row] = await shown.store.read.audit.page({ limit: 1 });
    expect(row).toMatchObject({ actor: 'vera', action: 'instance.retry', outcome: 'refused' });
  });
});
