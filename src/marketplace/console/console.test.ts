import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { brokenForms, hostileForms, hostileReads } from '../../../test/support/http/hostile-requests.ts';
import { deployment } from '../../../test/support/rows/marketplace-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { createOperatorKey } from '../../operator-kit/keys.ts';
import { systemRandom } from '../../runtime/system.ts';
import { createKey, createUser } from '../operate/people.ts';
import { setDiscount } from '../operate/teams.ts';
import { pages } from './app.ts';
import { startMarketConsole, type TestMarketConsole } from './console.fixture.ts';
import { HOSTILE, putDemoMarket, TRAINING } from './demo-market.fixture.ts';

let shown: TestMarketConsole;
let cookie: string;

beforeEach(async () => {
  shown = await startMarketConsole({ clock: new VirtualClock() });
  await putDemoMarket(shown);
  cookie = await shown.logIn();
});
afterEach(() => shown[Symbol.asyncDispose]());

const get = (path: string) => shown.request(path, { headers: { cookie } });
const read = async (path: string) => (await get(path)).text();
const idOf = (path: string) => (/^\/(teams|statements)/.test(path) ? TRAINING.teamId : TRAINING.id);
const paths = pages.map(([path]) =>
  path === '/bills'
    ? `/console/bills?id=${TRAINING.id}`
    : `/console${path === '/' ? '' : path.replace(/:\w+/, idOf(path))}`,
);

describe('the console of the marketplace', () => {
  it('shows no page without a session, and each page to an operator', async () => {
    for (const path of paths) {
      const stranger = await shown.request(path);
      expect([path, stranger.status, await stranger.text()]).toEqual([path, 303, '']);
      expect([path, (await get(path)).status]).toEqual([path, 200]);
    }
    for (const path of ['deployments/dep-x', 'teams/team-x', 'bills/dep-x', 'statements/team-x'])
      expect((await get(`/console/${path}`)).status).toBe(404);
  });

  it('reads the spending teams once for its first page', async () => {
    const spending = vi.spyOn(shown.store.read.teams, 'spending');
    expect(await read('/console')).toContain('Teams whose balance runs out first');
    expect(spending).toHaveBeenCalledOnce();
  });

  it('escapes what users and providers have written', async () => {
    await shown.store.transact(async (tx) => {
      const record = await tx.deployments.byId(TRAINING.id);
      if (record === null) throw new Error('it is there');
      await tx.deployments.update({
        ...record,
        name: HOSTILE,
        offerId: HOSTILE,
        region: HOSTILE,
        ipAddress: HOSTILE,
      });
      const team = await tx.teams.byId(TRAINING.teamId);
      if (team !== null) await tx.teams.update({ ...team, name: HOSTILE });
    });
    for (const path of paths) {
      const page = await read(path);
      expect([path, page.includes('<img'), page.includes('<script>')]).toEqual([path, false, false]);
    }
    expect(await read('/console/deployments')).toContain('&lt;script&gt;alert(2)&lt;/script&gt;');
  });

  it('lists deployments page by page, each once, and finds one by its name', async () => {
    await shown.store.transact(async (tx) => {
      for (let index = 0; index < 60; index++)
        await tx.deployments.insert(
          deployment({ id: `dep-many-${index}`, teamId: 'team-idle', userId: 'usr-ann', createdAt: 7 }),
        );
    });
    const ids = (page: string) =>
      [...page.matchAll(/href="\/console\/deployments\/([\w-]+)"/g)].map(([, id]) => id);
    const seen: (string | undefined)[] = [];
    let path: string | undefined = '/console/deployments?status=all';
    while (path !== undefined) {
      const page = await read(path);
      seen.push(...ids(page));
      path = /rel="next" href="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    expect([new Set(seen).size, seen.length]).toEqual([97, 97]);
    expect(ids(await read('/console/deployments?q=TRAIN-llama'))).toEqual([TRAINING.id]);
  });

  it('says which provider fails, and what to do', async () => {
    const page = await read('/console/providers');
    expect(page).toContain('calls about deployments fail: unauthorized');
    expect(page).toContain('2 losses are held until an operator decides');
    expect(page).toContain('berth marketplace providers check');
    expect(page).toContain('href="/console/actions/acceptLosses?provider=provider-c"');
    expect(await read('/console/losses')).toContain('provider-c');
  });

  it('shows the hourly cost of a team and how long its balance lasts, and explains a bill', async () => {
    const team = await read(`/console/teams/${TRAINING.slug}`);
    expect(team).toMatch(/Cost per hour, before discounts<\/dt><dd><bdi>\$\d/);
    expect(team).toContain(`href="/console/bills/${TRAINING.id}"`);
    const bill = await read(`/console/bills/${TRAINING.id}`);
    expect(bill).toContain('Used since');
    expect(bill).toContain('$18.40');
  });

  it('shows that the instance of a lost deployment is kept, and deletes it by a form', async () => {
    const path = `/console/deployments/${TRAINING.id}`;
    expect(await read(path)).not.toContain('Instance lost');
    await shown.store.transact(async (tx) => {
      const record = await tx.deployments.byId(TRAINING.id);
      if (record === null) throw new Error('it is there');
      await tx.deployments.update({ ...record, status: 'terminated-provider', stoppedAt: shown.clock.now() });
    });
    const page = await read(path);
    expect(page).toContain(`berth marketplace losses clean-up ${TRAINING.id}`);
    const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const [, action = ''] = /action="([^"]+cleanUpLost)"/.exec(page) ?? [];
    const send = (fields: Record<string, string>) =>
      shown.request(action, { method: 'POST', headers: { cookie }, body: new URLSearchParams(fields) });
    const done = await send({ deploymentId: TRAINING.id, csrf });
    expect([done.status, done.headers.get('location')]).toEqual([303, path]);
    expect(await shown.store.read.deployments.byId(TRAINING.id)).toMatchObject({ cleanup: 'wanted' });
    expect(await read(path)).not.toContain('Instance lost');
  });

  it('suspends a user and restores them, by a page that shows the plan', async () => {
    const users = '/console/users';
    const follow = async (page: string, action: string, reason: string) => {
      const [, link = ''] = new RegExp(`href="([^"]+${action}\\?[^"]+)"`).exec(page) ?? [];
      const plan = await read(link.replaceAll('&amp;', '&'));
      expect(plan).toContain('This is a dry run');
      const fields = [...plan.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)];
      const body = new URLSearchParams(
        fields.map(([, name = '', value = '']): [string, string] => [name, value]),
      );
      body.set('reason', reason);
      const headers = { cookie };
      return shown.request(`/console/actions/${action}`, { method: 'POST', headers, body });
    };
    expect((await follow(await read(users), 'suspendUser', '')).status).toBe(409);
    expect((await follow(await read(users), 'suspendUser', 'stolen <cards>')).status).toBe(303);
    expect(await shown.store.read.users.suspended()).toMatchObject([{ suspension: { by: 'mara' } }]);
    const suspended = await read(users);
    expect(suspended).toContain('stolen &lt;cards&gt;');
    expect((await follow(suspended, 'restoreUser', '')).status).toBe(303);
    expect(await shown.store.read.users.suspended()).toEqual([]);
    const [entry] = await shown.store.read.audit.page({ limit: 1 });
    expect(entry).toMatchObject({ source: 'console', action: 'user.restore' });
  });

  it('asks for the reason once, as it was given, and says who reads it', async () => {
    const asked = (action: string) => read(`/console/actions/${action}&reason=a+fire`);
    for (const [action, who] of [
      [`suspendTeam?team=${TRAINING.teamId}`, 'the customer reads it'],
      [`terminateDeployment?deploymentId=${TRAINING.id}`, 'the customer reads it'],
    ] as const) {
      const [form = ''] =
        /<form[^>]+method="post" action="[^"]+actions[\s\S]+?<\/form>/.exec(await asked(action)) ?? [];
      expect(form).toContain(`Reason (${who})`);
      expect(form.match(/<input[^>]*name="reason"[^>]*>/g)).toEqual([
        '<input name="reason" value="a fire" maxlength="200">',
      ]);
    }
  });

  it('shows a viewer no button that their role refuses', async () => {
    const { key } = await createOperatorKey(
      { ...shown, random: systemRandom },
      { name: 'vic', role: 'viewer' },
    );
    const login = await shown.request('/console/login', {
      method: 'POST',
      body: new URLSearchParams({ key }),
    });
    const headers = { cookie: login.headers.get('set-cookie')?.split(';')[0] ?? '' };
    for (const path of paths) {
      const page = await (await shown.request(path, { headers })).text();
      expect([path, page.match(/\/console\/actions\/\w+/g)]).toEqual([path, null]);
    }
  });

  it('offers a statement to print, as CSV and as JSON', async () => {
    const page = await read(`/console/statements/${TRAINING.teamId}`);
    expect(page).toContain('Statement of Vision Lab');
    for (const name of ['Page to print', 'CSV', 'JSON'])
      expect(page).toMatch(new RegExp(`download=[^>]+>${name}<`));
  });

  it('retries a mail only by a form of its own session, in the name of the logged-in operator', async () => {
    const page = await read('/console/mails?state=given_up');
    const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const send = (fields: Record<string, string>) =>
      shown.request('/console/actions/resendMail', {
        method: 'POST',
        headers: { cookie },
        body: new URLSearchParams(fields),
      });
    expect((await send({ mailId: 'mail-lost' })).status).toBe(403);
    expect((await send({ mailId: 'mail-lost', csrf })).status).toBe(303);
    expect((await shown.store.read.mail.list({ state: 'given_up', limit: 9 })).length).toBe(0);
    const [entry] = await shown.store.read.audit.page({ limit: 1 });
    expect(entry).toMatchObject({
      actor: 'mara',
      source: 'console',
      action: 'mail.resend',
      subject: 'mail-lost',
    });
    const refused = await send({ mailId: 'mail-sent', csrf });
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringContaining('is not sent twice'),
    ]);
  });

  it('accepts losses, revokes a key and ends a discount by forms that say what follows', async () => {
    const deps = { store: shown.store, clock: shown.clock, random: systemRandom };
    const user = 'kim@example.com';
    const by = { name: 'mara', source: 'cli', address: null } as const;
    await createUser.perform(deps, by, { email: user, allow_keys: true });
    const { id: keyId } = await createKey.perform(deps, by, { user });
    const { id: discountId } = await setDiscount.perform(deps, by, { team: TRAINING.teamId, percent: 20 });
    for (const [list, action, fields, word] of [
      ['providers', 'acceptLosses', { provider: 'provider-c' }, 'stays ended'],
      ['keys', 'revokeKey', { keyId }, 'refused within a second'],
      ['discounts', 'endDiscount', { discountId }, 'billed without it'],
    ] as const) {
      const path = `/console/actions/${action}`;
      const link = `${path}?${new URLSearchParams(fields)}`;
      expect(await read(`/console/${list}`)).toContain(`href="${link}"`);
      const plan = await read(link);
      expect(plan).toContain(word);
      const csrf = /name="csrf" value="([^"]+)"/.exec(plan)?.[1] ?? '';
      const body = new URLSearchParams({ ...fields, csrf });
      const done = await shown.request(path, { method: 'POST', headers: { cookie }, body });
      expect([done.status, done.headers.get('location')]).toEqual([303, `/console/${list}`]);
    }
    const rows = await shown.store.read.audit.page({ limit: 3 });
    expect(rows.map(({ action, source }) => [action, source])).toEqual([
      ['discount.end', 'console'],
      ['key.revoke', 'console'],
      ['losses.accept', 'console'],
    ]);
    expect(await read('/console/keys')).toContain('revoked');
  });

  it('adds a user, gives a team a discount and books a credit by forms beside their lists', async () => {
    const csrf = /name="csrf" value="([^"]+)"/.exec(await read('/console/users'))?.[1] ?? '';
    const team = TRAINING.teamId;
    const grant = { team, kind: 'grant', amount_usd: '12.50', reference: 'outage-of-monday' };
    expect(await read(`/console/actions/bookCredit?${new URLSearchParams(grant)}`)).toContain(
      '$12.50 are booked to',
    );
    for (const [list, action, fields] of [
      [
        'users',
        'createUser',
        { email: 'kim@example.com', allow_keys: 'yes', marketing_mail: 'no', create_limit: '3' },
      ],
      ['discounts', 'setDiscount', { team, percent: '20', until: '7d' }],
      ['books', 'bookCredit', grant],
    ] as const) {
      expect(await read(`/console/${list}`)).toContain(`action="/console/actions/${action}"`);
      const body = new URLSearchParams({ ...fields, csrf });
      const path = `/console/actions/${action}`;
      const done = await shown.request(path, { method: 'POST', headers: { cookie }, body });
      expect([done.status, done.headers.get('location')]).toEqual([303, `/console/${list}`]);
    }
    const { users, discounts } = shown.store.read;
    expect(await users.byEmail('kim@example.com')).toMatchObject({
      mayMakeKeys: true,
      wantsMarketingMail: false,
      createLimit: 3,
    });
    // A box without a tick would say that it is off, and it is on by default.
    expect(await read('/console/users')).toContain(
      '<select name="marketing_mail"><option value="">default</option>',
    );
    expect(await discounts.ofTeam(team)).toMatchObject([{ percentage: 20 }]);
    expect(await read('/console/books')).toContain('outage-of-monday');
    const rows = await shown.store.read.audit.page({ limit: 3 });
    expect(rows.map(({ action }) => action)).toEqual(['credit.grant', 'discount.set', 'user.add']);
  });
});

it('answers no hostile request with a 5xx or an error line [market-console-hostile]', async () => {
  const csrf = /name="csrf" value="([^"]+)"/.exec(await read('/console'))?.[1] ?? '';
  const names = [
    'id',
    'mailId',
    'deploymentId',
    'q',
    'state',
    'status',
    'provider',
    'team',
    'after',
    'before',
    'actor',
    'action',
    'subject',
    'next',
  ];
  const actions = [
    'resendMail',
    'cleanUpLost',
    'acceptLosses',
    'revokeKey',
    'endDiscount',
    'bookCredit',
    'createUser',
  ];
  const forms = actions.map((name) => `/console/actions/${name}`);
  const pagePaths = pages.map(([path]) => `/console${path}`);
  const requests = [
    ...hostileReads([...pagePaths, '/console/assets/:name', '/console/login', '/console/:none'], names),
    ...brokenForms(['/console/login', ...forms, '/console/none']),
    ...hostileForms([...forms, '/console/login', '/console/none'], names, csrf),
    ...hostileForms(['/console/logout'], names, 'x'),
  ];
  for (const { path, init } of requests) {
    const { status } = await shown.request(path, { ...init, headers: { cookie, ...init?.headers } });
    const what = [path.slice(0, 100), String(init?.body ?? '').slice(0, 100), JSON.stringify(init?.headers)];
    expect([...what, status < 500, shown.errors]).toEqual([...what, true, []]);
  }
});
