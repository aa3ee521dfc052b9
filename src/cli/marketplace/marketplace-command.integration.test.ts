import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { runMain } from '../../../test/support/processes/run-main.ts';
import {
  now,
  runningDeployment,
  seed,
  segment,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { snapshotOf } from '../../../test/support/snapshot.ts';
import { serveMarketplace } from '../../compose/serve/marketplace.ts';
import { loadMarketplaceConfig } from '../../config/marketplace/load.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-cli-'));
const config = join(folder, 'marketplace.yaml');
const KEY = 'berth_secret_of_the_provider';
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);

beforeAll(() => {
  writeFileSync(
    config,
    `database: sqlite:m.db
log_level: silent
providers:
- { id: provider-d, base_url: "http://127.0.0.1:1/v1", api_key_env: KEY_D, allow_private: true }
`,
  );
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => vi.stubEnv('KEY_D', KEY));
afterEach(() => vi.unstubAllEnvs());

/** Runs `berth marketplace …` with the configuration. It must succeed. */
async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(['marketplace', ...args, '--config', config]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function sentenceOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(['marketplace', ...args, '--config', config]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).not.toContain(KEY);
  return stderr;
}

async function serve(env: Record<string, string> = { KEY_D: KEY }, port = '0') {
  const loaded = loadMarketplaceConfig({ file: config, flags: { port }, env });
  const serving = await serveMarketplace({ config: loaded, env });
  return { ...serving, [Symbol.asyncDispose]: () => serving.stop() };
}

describe('berth marketplace', () => {
  it('starts without its provider, and refuses to be started twice [marketplace-without-provider]', async () => {
    await using serving = await serve();
    const response = await fetch(`${serving.baseUrl}/api/providers`);
    expect(await response.json()).toEqual(['provider-d']);
    expect(response.headers.get('X-RateLimit-Limit')).toBe('250');
    expect(await sentenceOf('--port', '0')).toMatch(/^berth: Another .*m\.db/);
  });

  it('starts at once after a killed one whose leases have not expired', async () => {
    const file = join(folder, 'm.db');
    const store = openMarketplaceSqliteStore(file);
    await store.transact((tx) => tx.leases.claim(['provider:provider-d:0'], 'killed', Date.now(), 30_000));
    await store.close();
    await using _serving = await serve();
    const db = new Database(file, { readonly: true });
    const holder = () =>
      db.prepare("SELECT holder FROM leases WHERE name = 'provider:provider-d:0'").pluck().get();
    expect(holder()).not.toBe('killed');
    db.close();
  });

  it.each([
    ['a key that is not there', {}, '0', /KEY_D is not set, and should hold the API key of provider-d/],
    [
      'a key that fits no header',
      { KEY_D: 'two words' },
      '0',
      /provider-d cannot be used: expected an API key/,
    ],
  ])('changes nothing when it cannot start: %s', async (_what, env, port, sentence) => {
    const before = snapshotOf(folder);
    await expect(serve(env, port)).rejects.toThrow(sentence);
    expect(snapshotOf(folder)).toEqual(before);
  });

  it('changes nothing when its port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as { port: number };
    const before = snapshotOf(folder);
    await expect(serve({ KEY_D: KEY }, String(port))).rejects.toThrow(`Port ${port} on 127.0.0.1 is taken`);
    expect(snapshotOf(folder)).toEqual(before);
    await new Promise((resolve) => other.close(resolve));
  });

  it('reports a missing provider or database', async () => {
    const { stderr } = await runMain(['marketplace', '--database', `sqlite:${folder}/none.db`]);
    expect(stderr).toMatch(/^berth: The marketplace has no provider: name one/);
    const none = await runMain(['marketplace', 'users', 'list', '--database', `sqlite:${folder}/none.db`]);
    expect(none.stderr).toMatch(
      /^berth: There is no database .*none\.db yet: start `berth marketplace` once/,
    );
  });

  it('reports the problem of each provider without its key', async () => {
    const { code, stdout } = await runMain(['marketplace', 'providers', 'check', '--config', config]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^BROKEN {3}provider provider-d: .*ECONNREFUSED.*\n +→ Check base_url/);
    expect(stdout).not.toContain(KEY);
  });

  it('reports what cannot be read or sold in a list of a provider that answers', async () => {
    const offer = {
      name: 'N',
      vcpus: 1,
      memory_gb: 1,
      storage_gb: 1,
      instance_type: 'DEDICATED',
      regions: [],
    };
    const good = { ...offer, id: 'good', price_per_hour: 1, available: true, supports_cloud_init: false };
    const configurations = [good, { ...good, id: 7 }, { ...good, id: 'dear', price_per_hour: 1e9 }];
    const provider = createHttpServer((request, response) =>
      response
        .setHeader('Content-Type', 'application/json')
        .end(JSON.stringify(request.url?.includes('instances') ? { instances: [] } : { configurations })),
    );
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const file = join(folder, 'answers.yaml');
    const { port } = provider.address() as AddressInfo;
    writeFileSync(file, readFileSync(config, 'utf8').replace('127.0.0.1:1/', `127.0.0.1:${port}/`));
    const { code, stdout } = await runMain(['marketplace', 'providers', 'check', '--config', file]);
    provider.close();
    expect([code, stdout.split('\n')]).toEqual([
      1,
      [
        'ok       provider provider-d: its catalog has 2 offers',
        'ok       provider provider-d: 2 offers can be deployed now',
        'ok       provider provider-d: it accepts the key, which has 0 instances',
        expect.stringMatching(
          '^BROKEN   provider provider-d: GET /configurations: configurations\\[1\\]: id',
        ),
        expect.stringMatching('→ Have the provider correct it'),
        expect.stringMatching('^BROKEN   provider provider-d: GET /availability: configurations\\[1\\]: id'),
        expect.stringMatching('→ Have the provider correct it'),
        expect.stringMatching('^BROKEN   provider provider-d: the offer "dear" is left out'),
        expect.stringMatching('→ Have the provider correct it'),
        '3 ok, 0 warnings, 3 broken.',
        '',
      ],
    ]);
  });
});

describe('an operator can', () => {
  const email = 'ann@example.com';
  let teamId: string;

  beforeAll(async () => {
    await openMarketplaceSqliteStore(join(folder, 'm.db')).close();
  });

  it('accept the losses of a provider', async () => {
    expect(await run('losses')).toBe('Nothing is held.\n');
    expect(await sentenceOf('losses', 'accept', 'provider-d', '--yes')).toMatch(
      'No losses are recorded for provider "provider-d"',
    );
    const store = openMarketplaceSqliteStore(join(folder, 'm.db'));
    const at = Date.now();
    const denied = { kind: 'deployment', providerId: 'provider-d', at } as const;
    await store.transact(async (tx) => {
      await tx.losses.put({ ...denied, subjectId: 'dep-1', isHeld: false });
      await tx.losses.put({ ...denied, subjectId: 'dep-2', isHeld: true });
    });
    await store.close();
    expect(await run('losses')).toMatch(/dep-2 +deployment +provider-d/);
    expect(JSON.parse(await run('losses', '--json'))).toEqual([
      { id: 'dep-2', kind: 'deployment', provider: 'provider-d', since: new Date(at).toISOString() },
    ]);
    const counts = { losses: 1, losses_cap: 5, losses_held: 1 };
    expect(JSON.parse(await run('providers', '--json'))).toMatchObject([
      { ...counts, losses_accepted_until: null },
    ]);
    expect(await sentenceOf('losses', 'accept', 'provider-d', '--yes', '--for', '3d')).toMatch(
      '--for 3d: give minutes or hours',
    );
    const { accepted_until } = JSON.parse(
      await run('losses', 'accept', 'provider-d', '--yes', '--for', '2h', '--json'),
    );
    expect(Date.parse(accepted_until) - at).toBeGreaterThanOrEqual(2 * 3_600_000);
    const [provider] = JSON.parse(await run('providers', '--json'));
    expect(provider).toMatchObject({ losses_accepted_until: accepted_until });
    expect(await run('losses', 'accept', 'provider-d', '--yes')).toMatch(
      'ends, within a minute, what provider-d answers 404 for',
    );
  });

  it('create users, who may have keys only if allowed [operator-sets-users]', async () => {
    expect(await run('users', 'add', 'Ann@Example.com', '--name', 'Ann')).toMatch(
      /^User ann@example\.com \(usr-/,
    );
    expect(await sentenceOf('users', 'add', email)).toMatch('A user ann@example.com already exists.');
    expect(await sentenceOf('users', 'add', 'ann')).toMatch('is not an e-mail address');
    expect(await sentenceOf('keys', 'create', email)).toMatch('may not have keys');
    await run('users', 'allow-keys', email, '--yes');
    await run(
      'users',
      'set',
      email,
      '--yes',
      '--create-limit',
      'none',
      '--minimum-runtime',
      '5',
      '--deployment-mail',
      'on',
    );
    expect(await run('users', 'list')).toMatch(/Ann +yes +no limit +5 +yes +yes/);
    const [user] = JSON.parse(await run('users', 'list', '--json'));
    expect(user).toMatchObject({
      email,
      create_limit: -1,
      minimum_runtime_minutes: 5,
      deployment_mail: true,
    });
    expect(await sentenceOf('users', 'set', email, '--yes', '--create-limit', '2147483647')).toMatch(
      'give a whole number of at most nine digits.',
    );
  });

  it('create keys, which open the API until they are revoked [operator-sets-keys]', async () => {
    const { id, api_key: key } = JSON.parse(await run('keys', 'create', email, '--json', '--expires', '3d'));
    expect(key).toMatch(/^berth_/);
    await using serving = await serve();
    const status = async () =>
      (await fetch(`${serving.baseUrl}/api/teams`, { headers: { Authorization: `Bearer ${key}` } })).status;
    expect(await status()).toBe(200);
    const listed = await run('keys', 'list', email);
    expect(listed).toMatch(new RegExp(`${id} +${email} .* valid `));
    expect(listed).not.toContain(key);
    expect(await run('keys', 'revoke', id, '--yes')).toMatch(`Key ${id} is revoked since`);
    expect(await run('keys', 'list')).toMatch(/ revoked /);
    expect(await sentenceOf('keys', 'revoke', 'key-none', '--yes')).toMatch('There is no key "key-none"');
  });

  it('create teams and change their members', async () => {
    await run('users', 'add', 'bob@example.com');
    const made = await run('teams', 'create', 'Lab', '--owner', email, '--slug', 'lab');
    teamId = /team-[0-9a-f]+/.exec(made)?.[0] ?? '';
    await run('teams', 'add-member', 'lab', 'bob@example.com', '--yes', '--role', 'admin');
    expect(await run('teams', 'show', 'lab')).toMatch(/bob@example\.com +bob +admin/);
    await run('teams', 'switch', 'bob@example.com', 'lab', '--yes');
    await run('teams', 'remove-member', 'lab', 'bob@example.com', '--yes');
    expect(await run('teams', 'show', teamId)).not.toContain('bob@example.com');
    expect(await run('teams', 'list')).toMatch(/lab +Lab +ann@example\.com +\$0\.00/);
    expect(await sentenceOf('teams', 'add-member', 'lab', email, '--yes', '--role', 'boss')).toMatch(
      '--role boss: give one of',
    );
  });

  it('record credit, each payment once', async () => {
    for (let time = 0; time < 2; time++)
      expect(await run('credit', 'add', 'lab', '25.50', '--reference', 'inv-1')).toMatch(
        `${teamId} has $25.50 left to spend`,
      );
    await run('credit', 'grant', teamId, '4.5');
    const correct = ['credit', 'adjust', '--config', config, '--reason', 'a mistake', 'lab', '--', '-1'];
    expect(await runMain(['marketplace', ...correct])).toMatchObject({ code: 0, stderr: '' });
    const books = await run('credit', 'show', 'lab');
    expect(books).toMatch(/has \$29\.00 left to spend/);
    expect(books).toMatch(/top_up .*inv-1/);
    expect(await sentenceOf('credit', 'add', 'lab', '1e3', '--reference', 'x')).toMatch('such as 25.50');
    expect(await run('verify-ledger')).toMatch('The ledger is consistent');
    expect(await run('check-database')).toMatch(/^OK, no damage found/);
    expect(JSON.parse(await run('verify-ledger', '--json'))).toMatchObject({ findings: [] });
  });

  it('set discounts, from 5 to 50 percent', async () => {
    const id = /disc-[0-9a-f]+/.exec(await run('discounts', 'set', 'lab', '10', '--until', '30d'))?.[0] ?? '';
    expect(await run('discounts', 'list', 'lab')).toMatch(new RegExp(`${id} +${teamId} +admin +10`));
    await run('discounts', 'end', id, '--yes');
    expect(await sentenceOf('discounts', 'set', 'lab', '60')).toMatch('5 to 50');
  });

  it('show alerts, mails and bills', async () => {
    const made = await run('alerts', 'add', email, 'provider-d', 'gpu-1', '--region', 'eu-one');
    const id = /alert-[0-9a-f]+/.exec(made)?.[0] ?? '';
    expect(await run('alerts', 'list', email)).toMatch(/provider-d +gpu-1 +eu-one/);
    await run('alerts', 'remove', id, '--yes');
    expect(await run('mail', 'list', '--to', email)).toMatch(/receipt/i);
    expect(await sentenceOf('explain-bill', 'dep-none')).toMatch(
      'There is no deployment or volume "dep-none"',
    );
  });

  it('print a bill as text and as JSON, of a deployment and of a volume by the id that its user sees', async () => {
    const store = openMarketplaceSqliteStore(join(folder, 'm.db'));
    const [start, middle, end] = [now, now + 30 * 60_000, now + 60 * 60_000];
    await seed(store);
    await store.transact(async (tx) => {
      await tx.deployments.insert(runningDeployment({ status: 'terminated' }));
      await tx.ledger.insertSegment(
        segment({
          ...{
            rateMicroUsdPerHour: 1_800_000,
            discountPercentage: 10,
            providerRateMicroUsdPerHour: 1_500_000,
          },
          startedAt: start,
          postedUntil: middle,
          endedAt: middle,
          postedMicroUsd: 900_000,
        }),
      );
      await tx.ledger.insertSegment(
        segment({
          id: 'seg-2',
          providerRateMicroUsdPerHour: 2_100_000,
          startedAt: middle,
          postedUntil: end,
          endedAt: end,
          postedMicroUsd: 1_000_000,
        }),
      );
      await tx.volumes.insert(volume({ status: 'deleted' }));
    });
    await store.close();
    expect(await run('explain-bill', 'dep-1')).toMatch(
      /\(10 % off \$2\.00\/h\)[\s\S]*of its team: \$1\.90\n/,
    );
    expect(JSON.parse(await run('explain-bill', 'dep-1', '--json'))).toEqual({
      id: 'dep-1',
      segments: [
        {
          state: 'running',
          from: '2026-11-21T00:00:00.000Z',
          until: '2026-11-21T00:30:00.000Z',
          hourly_rate_usd: 1.8,
          original_hourly_rate_usd: 2,
          discount_percent: 10,
          provider_hourly_rate_usd: 1.5,
          taken_usd: 0.9,
          margin_usd: 0.15,
        },
        {
          state: 'running',
          from: '2026-11-21T00:30:00.000Z',
          until: '2026-11-21T01:00:00.000Z',
          hourly_rate_usd: 2,
          original_hourly_rate_usd: 2,
          discount_percent: 0,
          provider_hourly_rate_usd: 2.1,
          taken_usd: 1,
          margin_usd: -0.05,
        },
      ],
      taken_usd: 1.9,
      used_since_usd: 0,
      provider_usd: 1.8,
      margin_usd: 0.1,
    });
    expect(JSON.parse(await run('explain-bill', 'vvol-1', '--json'))).toMatchObject({
      id: 'vol-1',
      segments: [],
      taken_usd: 0,
      used_since_usd: 0,
    });
  });

  it('create a user in a team, and no user if the team does not exist', async () => {
    expect(await run('users', 'add', 'cat@example.com', '--team', 'lab')).toMatch(/, a member of lab\./);
    const { members } = JSON.parse(await run('teams', 'show', 'lab', '--json'));
    expect(members).toContainEqual(expect.objectContaining({ email: 'cat@example.com', role: 'member' }));
    expect(await sentenceOf('users', 'add', 'dog@example.com', '--team', 'none')).toMatch('no team "none"');
    expect(await run('users', 'list')).not.toContain('dog@example.com');
  });

  it.each([
    ['users list', [{ email, name: 'Ann', created_at: TIME }]],
    ['keys list', [{ user: email, state: 'revoked', expires_at: TIME }]],
    ['teams list', [{ slug: 'lab', owner: email, balance_usd: 29 }]],
    ['teams show lab', { slug: 'lab', balance_usd: 29 }],
    ['credit show lab', { balance_usd: 29, name: 'Lab' }],
    ['discounts list', [{ percent: 10, source: 'admin', from: TIME, until: TIME }]],
    ['alerts list', []],
    ['mail list', [{ kind: 'receipt', to: email, last_error: null }]],
    ['providers list', [{ provider: 'provider-d', state: 'failing', losses_held: 1 }]],
  ])('print %s as JSON', async (command, wanted) => {
    const shown = JSON.parse(await run(...command.split(' '), '--json'));
    if (!Array.isArray(wanted)) return expect(shown).toMatchObject(wanted);
    for (const one of wanted) expect(shown).toContainEqual(expect.objectContaining(one));
    expect(Array.isArray(shown)).toBe(true);
  });

  it('check the providers as JSON, with the exit code', async () => {
    const args = ['marketplace', 'providers', 'check', '--json', '--config', config];
    const { code, stdout } = await runMain(args);
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      {
        subject: 'provider provider-d',
        verdict: 'broken',
        finding: expect.any(String),
        remedy: expect.any(String),
      },
    ]);
  });

  it('create keys that expire in 30 minutes, 2 hours or 7 days', async () => {
    for (const [text, ms] of [
      ['30m', 30 * 60_000],
      ['2h', 2 * 3_600_000],
      ['7d', 7 * 86_400_000],
    ] as const) {
      const { id } = JSON.parse(await run('keys', 'create', email, '--json', '--expires', text));
      const keys = JSON.parse(await run('keys', 'list', email, '--json'));
      const { created_at: from, expires_at: until } = keys.find((key: { id: string }) => key.id === id);
      expect(Math.abs(Date.parse(until) - Date.parse(from) - ms)).toBeLessThan(60_000);
    }
    expect(await sentenceOf('keys', 'create', email, '--expires', '0m')).toMatch('give a future time');
  });

  it('find a balance that differs from the sum of its entries, with the exit code', async () => {
    const db = new Database(join(folder, 'm.db'));
    db.prepare('UPDATE teams SET balance_micro_usd = balance_micro_usd + 1 WHERE id = ?').run(teamId);
    db.close();
    const { code, stdout } = await runMain(['marketplace', 'verify-ledger', '--config', config]);
    expect([code, stdout]).toEqual([1, expect.stringContaining(teamId)]);
  });
});
