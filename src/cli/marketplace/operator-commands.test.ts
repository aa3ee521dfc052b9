import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runMain } from '../../../test/support/processes/run-main.ts';
import {
  deployment,
  mail,
  now,
  runningDeployment,
  seed,
  segment,
  teamId,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import {
  answerJson,
  configurationAnswer,
  startAnsweringServer,
} from '../../client/answering-server.fixture.ts';
import { grant } from '../../marketplace/ledger/credit.ts';
import { readBooks } from '../../marketplace/operate/views/books.ts';
import { systemRandom } from '../../runtime/system.ts';
import { openMarketplaceSqliteStore } from '../../store/marketplace/sqlite/store.ts';

const HOUR_MS = 3_600_000;
const folder = mkdtempSync(join(tmpdir(), 'berth-marketplace-operator-'));
const config = join(folder, 'marketplace.yaml');

const LONG_NAME = `a\nname ${'x'.repeat(100_000)}`;

beforeAll(async () => {
  vi.stubEnv('KEY_A', 'a-secret-of-the-provider');
  writeFileSync(
    config,
    `database: sqlite:m.db
log_level: silent
providers:
- { id: provider-a, base_url: "http://127.0.0.1:1/v1", api_key_env: KEY_A, allow_private: true }
- { id: provider-b, base_url: "http://127.0.0.1:1/v1", api_key_env: KEY_A, allow_private: true }
`,
  );
  const store = openMarketplaceSqliteStore(join(folder, 'm.db'));
  await seed(store);
  await grant({ store, clock: { now: () => now }, random: systemRandom } as Parameters<typeof grant>[0], {
    teamId,
    amountMicroUsd: 100_000_000,
  });
  await store.transact(async (tx) => {
    await tx.deployments.insert(runningDeployment({ createdAt: now + 1 }));
    await tx.deployments.insert(deployment({ id: 'dep-2', createdAt: now + 2 }));
    await tx.deployments.insert(
      deployment({
        id: 'dep-3',
        name: LONG_NAME,
        status: 'failed',
        failureReason: 'out_of_stock',
        failureDetails: 'The provider had no machine left.',
        createdAt: now + 3,
      }),
    );
    await tx.ledger.insertSegment(segment());
    await tx.volumes.insert(volume());
  });
  await store.close();
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(['marketplace', ...args, '--config', config]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function sentenceOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(['marketplace', ...args, '--config', config]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  return stderr;
}

describe('the commands for the operator of a marketplace', () => {
  it('status: providers of the configuration and of rows, the teams that spend, and the mail', async () => {
    const { providers, teams, mails, first_to_run_out: first } = JSON.parse(await run('status', '--json'));
    const nothing = { deploying: 0, running: 0, stopped: 0, volumes: 0, waiting_for_ssh: 0, losses_held: 0 };
    expect(providers).toMatchObject([
      {
        ...nothing,
        provider: 'provider-a',
        deploying: 1,
        running: 1,
        volumes: 1,
        to_sync: 2,
        confirmed_until: new Date(now).toISOString(),
      },
      { ...nothing, provider: 'provider-b', to_sync: 0, confirmed_until: null },
    ]);
    // The deployment was last confirmed when it began: nothing after that is billed.
    expect(first).toMatchObject([{ slug: teamId, balance_usd: 100, burn_usd_per_hour: 2, hours_left: 50 }]);
    expect(teams).toMatchObject({ count: 1, spending: 1, without_balance: 0 });
    expect(mails).toEqual({ waiting: 0, oldest_created_at: null, next_try_at: null, given_up: 0 });
    const text = await run('status');
    expect(text).toMatch(/\nteams +1, 1 of them are billed, \$2\.00 an hour\nmails +none waits\n/);
    expect(text).toMatch(/\nPROVIDER +STATE[^\n]*\nprovider-a +unknown +1 +1 +0 /);
    expect(text).toMatch(/\nteam-1 [^\n]* \$100\.00 +\$2\.00 +2 d /);
  });

  it('status: names the next try of a mail as a time to come, and those that were given up', async () => {
    const at = Date.now();
    const database = join(folder, 'mails.db');
    const store = openMarketplaceSqliteStore(database);
    const [writtenAt, dueAt] = [at - 2 * HOUR_MS, at + HOUR_MS];
    await store.transact(async (tx) => {
      await tx.mail.insert(mail({ id: 'mail-1', createdAt: writtenAt, dueAt, attempts: 5 }));
      await tx.mail.insert(mail({ id: 'mail-2', createdAt: at, dueAt: at + 2 * HOUR_MS, attempts: 1 }));
      await tx.mail.insert(mail({ id: 'mail-3', createdAt: at - 80 * HOUR_MS, failedAt: at - HOUR_MS }));
    });
    await store.close();
    const time = (ms: number) => new Date(ms).toISOString();
    expect(await run('status', '--database', `sqlite:${database}`)).toContain(
      `2 wait, the oldest since ${time(writtenAt)}; the next try is due at ${time(dueAt)}; ` +
        'given up in 24 hours: 1, see berth marketplace mail ls --state given_up\n',
    );
    expect(JSON.parse(await run('status', '--json', '--database', `sqlite:${database}`))).toMatchObject({
      mails: { waiting: 2, oldest_created_at: time(writtenAt), next_try_at: time(dueAt), given_up: 1 },
    });
  });

  it('deployments ls: of all teams, by provider, team and status', async () => {
    const idsOf = async (...flags: string[]): Promise<string[]> =>
      JSON.parse(await run('deployments', 'ls', '--json', ...flags)).map(({ id }: { id: string }) => id);
    expect(await idsOf()).toEqual(['dep-2', 'dep-1']);
    expect(await idsOf('--status', 'all', '--limit', '2')).toEqual(['dep-3', 'dep-2']);
    expect(await run('deployments', 'ls', '--limit', '1')).toMatch(/\nThere are more rows: .* above 1\.\n$/);
    expect(await run('deployments', 'ls', '--limit', '2')).not.toContain('There are more rows');
    expect(await idsOf('--status', 'failed')).toEqual(['dep-3']);
    expect(await idsOf('--provider', 'provider-b')).toEqual([]);
    expect(await idsOf('--team', teamId, '--provider', 'provider-a')).toEqual(['dep-2', 'dep-1']);
    expect(await sentenceOf('deployments', 'ls', '--status', 'gone')).toMatch(
      '--status gone: give one of active, all, deploying',
    );
    expect(await sentenceOf('deployments', 'ls', '--limit', '0')).toMatch(
      '--limit 0: give a whole number from 1',
    );
  });

  it('deployments ls and show: the name, for a person cut to one line of 255 characters', async () => {
    const list = await run('deployments', 'ls', '--status', 'all');
    expect(list).toMatch(/^ID +NAME +STATUS/);
    const shown = await run('deployments', 'show', 'dep-3');
    expect(/a\\u000aname x+…/.exec(list)?.[0]).toHaveLength(40);
    expect(/a\\u000aname x+…/.exec(shown)?.[0]).toHaveLength(255);
    expect(JSON.parse(await run('deployments', 'show', 'dep-3', '--json'))).toHaveProperty('name', LONG_NAME);
  });

  it('deployments show: prints one deployment and why it failed', async () => {
    expect(await run('deployments', 'show', 'dep-3')).toMatch(
      /\nfailure reason +out_of_stock\n[\s\S]*\nfailure details +The provider/,
    );
    expect(JSON.parse(await run('deployments', 'show', 'dep-1', '--json'))).toMatchObject({
      status: 'running',
      endpoint: 'ubuntu@192.0.2.1:22',
      provider_instance_id: 'inst-dep-1',
      cost_usd: 0,
    });
    expect(await sentenceOf('deployments', 'show', 'dep-9')).toMatch(
      'There is no deployment "dep-9": see `berth marketplace deployments ls --status all`.',
    );
    expect(await sentenceOf('teams', 'show', 'none')).toMatch(
      'There is no team "none": see `berth marketplace teams ls`.',
    );
  });

  it('ledger: what teams have left and what was given add up', async () => {
    const accounts: { account: string; amount_usd: number }[] = JSON.parse(await run('ledger', '--json'));
    const amountOf = (name: string) => accounts.find(({ account }) => account === name)?.amount_usd;
    expect(amountOf('teams')).toBe(100);
    expect(Math.abs(amountOf('promotion') ?? 0)).toBe(100);
    expect(await run('ledger')).toMatch(/^ACCOUNT +AMOUNT +MEANING\nteams +\$100\.00/);
  });

  it('every changing command leaves a row in the audit log, also when it is refused', async () => {
    const { operator_key: key } = JSON.parse(await run('operators', 'create', 'mara', '--json'));
    expect(key).toMatch(/^berthop_/);
    expect(JSON.parse(await run('operators', 'list', '--json'))).toMatchObject([
      { name: 'mara', state: 'valid' },
    ]);
    await run('credit', 'grant', teamId, '5', '--reason', 'sorry');
    for (const _ of [1, 2]) await run('credit', 'add', teamId, '5', '--reference', 'bank-1');
    await run('users', 'add', 'eve@example.com');
    await run('teams', 'create', 'Acme', '--owner', 'usr-1@example.com', '--slug', 'acme');
    await run('teams', 'add-member', 'acme', 'eve@example.com', '--yes');
    await run('teams', 'remove-member', 'acme', 'eve@example.com', '--yes');
    const acme = JSON.parse(await run('teams', 'show', 'acme', '--json')).id;
    expect(await sentenceOf('losses', 'accept', 'provider-a', '--yes')).toContain('No losses are recorded');
    const rows: Record<string, unknown>[] = JSON.parse(await run('audit', 'ls', '--json'));
    expect(rows.map(({ action, subject, outcome, source }) => [action, subject, outcome, source])).toEqual([
      ['losses.accept', 'provider-a', 'refused', 'cli'],
      ['team.remove_member', acme, 'done', 'cli'],
      ['team.set_member', acme, 'done', 'cli'],
      ['team.create', acme, 'done', 'cli'],
      ['user.add', 'eve@example.com', 'done', 'cli'],
      ['credit.top_up', teamId, 'done', 'cli'],
      ['credit.grant', teamId, 'done', 'cli'],
      ['operator_key.create', 'mara', 'done', 'cli'],
    ]);
    expect(JSON.stringify(rows)).not.toContain(key);
  });

  it('losses clean-up: has the instance of a lost deployment deleted, says what follows, and only once', async () => {
    const lost = { status: 'terminated-provider', stoppedAt: now + 5, createdAt: now - 1 } as const;
    const store = openMarketplaceSqliteStore(join(folder, 'm.db'));
    for (const id of ['dep-lost-1', 'dep-lost-2'])
      await store.transact((tx) => tx.deployments.insert(runningDeployment({ id, ...lost })));
    const shown = (id: string, ...flags: string[]) => run('deployments', 'show', id, ...flags);
    expect(await shown('dep-lost-1')).toMatch(
      /\nlost +yes: .* berth marketplace losses clean-up dep-lost-1\n/,
    );
    expect(await run('losses', 'clean-up', 'dep-lost-1', '--yes')).toBe(
      'A running server deletes the instance inst-dep-lost-1 of dep-lost-1 at provider-a with its data within ' +
        'seconds; if it turns up only later, the sweep deletes it. To see when the clean-up is done: ' +
        'berth marketplace deployments show dep-lost-1\n',
    );
    expect(JSON.parse(await run('losses', 'clean-up', 'dep-lost-2', '--yes', '--json'))).toEqual({
      id: 'dep-lost-2',
      provider: 'provider-a',
      provider_instance_id: 'inst-dep-lost-2',
      cleanup: 'wanted',
    });
    expect(JSON.parse(await shown('dep-lost-1', '--json'))).toMatchObject({ cleanup: 'wanted', lost: false });
    await store.transact((tx) => tx.deployments.setCleanup('dep-lost-2', 'done'));
    await store.close();
    for (const [id, reason] of [
      ['dep-lost-1', 'is already being deleted'],
      ['dep-lost-2', 'is already deleted'],
      ['dep-1', 'is running: it has not ended'],
      ['dep-3', 'never had an instance'],
      ['dep-9', 'There is no deployment'],
    ] as const)
      expect(await sentenceOf('losses', 'clean-up', id, '--yes')).toContain(reason);
  });

  it('providers ls: what runs at each, without calling them', async () => {
    expect(JSON.parse(await run('providers', 'ls', '--json'))).toMatchObject([
      { provider: 'provider-a', state: 'unknown', running: 1, catalog_read_at: null },
      { provider: 'provider-b', state: 'unknown', running: 0 },
    ]);
    expect(await run('providers')).toMatch(/\nprovider-a +unknown +1 /);
  });

  it.each([
    [401, 1, ['ok', 'ok', 'broken'], 'Get a new key of the provider'],
    [500, 1, ['ok', 'ok', 'broken'], 'Send the provider this line'],
    [200, 0, ['ok', 'ok', 'ok'], undefined],
  ])('providers check: of a provider whose instances answer %s', async (status, exit, verdicts, remedy) => {
    await using server = await startAnsweringServer(({ url }, response) => {
      if (url.endsWith('/instances')) return answerJson(response, status, { instances: [] });
      answerJson(response, 200, { configurations: [configurationAnswer] });
    });
    const asked = join(folder, `asked-${status}.yaml`);
    writeFileSync(
      asked,
      `log_level: silent
providers:
- { id: provider-a, base_url: "${server.baseUrl}", api_key_env: KEY_A, allow_private: true }
`,
    );
    const args = ['marketplace', 'providers', 'check', '--json', '--config', asked];
    const { code, stdout } = await runMain(args);
    const findings = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>);
    expect([code, findings.map(({ verdict }) => verdict)]).toEqual([exit, verdicts]);
    if (remedy !== undefined) expect(findings.at(-1)?.['remedy']).toContain(remedy);
  });

  it('teams list: those that run out first, with how long they last', async () => {
    expect(JSON.parse(await run('teams', 'list', '--spending', '--json'))).toMatchObject([
      { slug: teamId, burn_usd_per_hour: 2 },
    ]);
    expect(await run('teams', 'list', '--find', 'nobody')).toBe('No teams found.\n');
  });

  it('verify-ledger: its verdict is kept for the pages', async () => {
    // The rows of this test were written without bookings.
    const { code, stdout } = await runMain(['marketplace', 'verify-ledger', '--json', '--config', config]);
    expect(code).toBe(1);
    const store = openMarketplaceSqliteStore(join(folder, 'm.db'));
    const { verified } = await readBooks(store.read, {});
    await store.close();
    const { findings } = JSON.parse(stdout);
    expect(verified).toMatchObject({ findings, counts: { findings: findings.length } });
    expect(verified?.accounts).toContainEqual({ account: 'promotion', amount_usd: -105 });
  });
});

it('copies the database of a marketplace that runs', async () => {
  const copy = join(folder, 'copy.db');
  const { code, stderr, stdout } = await runMain([
    'marketplace',
    'backup',
    copy,
    '--config',
    config,
    '--json',
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ file: copy });
  const books = async (path: string) => {
    const store = openMarketplaceSqliteStore(path);
    try {
      return await readBooks(store.read, {});
    } finally {
      await store.close();
    }
  };
  expect(await books(copy)).toEqual(await books(join(folder, 'm.db')));
});
