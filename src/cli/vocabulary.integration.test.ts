import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { commandsBelow, loadBerth, nameOf } from '../../test/documents/command-line.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { instance } from '../../test/support/rows/orchestrator-rows.ts';
import { openMarketplaceSqliteStore } from '../store/marketplace/sqlite/store.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';

/** Every command of the suite is about a target, with its own flags and words. */
const listings = commandsBelow(await loadBerth())
  .map((command) => nameOf(command).replace('berth ', ''))
  .filter((name) => name.endsWith(' ls') && !name.startsWith('conformance'));
const ofDatabases = listings.filter((name) => !['context ls', 'marketplace providers ls'].includes(name));

it.each([
  // These are facts by platform or offer, which the configuration limits.
  ...listings.filter((name) => !['capacity ls', 'platforms ls', 'losses ls'].includes(name)),
  'instances events inst-1',
])('%s takes a --limit from 1', async (name) => {
  const { code, stderr } = await runMain([...name.split(' '), '--limit', '0']);
  expect([code, stderr]).toEqual([1, 'berth: --limit 0: give a whole number from 1.\n']);
});

describe('on a database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-vocabulary-'));
  const empty = join(folder, 'empty');
  const EVIL = 'a\u001b[2J\u009b1m\u202eb\u200b\u{e0041}: "x" # \\';

  beforeAll(async () => {
    mkdirSync(empty);
    for (const path of [folder, empty]) {
      await openMarketplaceSqliteStore(join(path, 'marketplace.db')).close();
      await openSqliteStore(join(path, 'berth.db')).close();
    }
    await run('accounts', 'add', 'ann');
    await run('keys', 'create', '--account', 'ann', '--label', 'a: "x" # \\');
    await run('keys', 'create', '--account', 'ann');
    const opened = openSqliteStore(join(folder, 'berth.db'));
    const [owner] = await opened.read.credentials.listAccounts();
    await opened.transact(async (tx) => {
      const accountId = owner?.id ?? '';
      await tx.instances.insert(instance('inst-1', { accountId, name: 'web', createdAt: 1 }));
      await tx.instances.insert(instance('inst-2', { accountId, name: 'db', createdAt: 2, error: EVIL }));
      await tx.instances.insert(instance('inst-3', { accountId, name: 'db', createdAt: 3, region: 'there' }));
      await tx.instances.insert(instance('web-1', { accountId, name: 'inst-1', createdAt: 4 }));
      const work = { resourceKind: 'instance', resourceId: 'inst-2', kind: 'create', notBefore: 1 } as const;
      await tx.work.put({ ...work, deadlineAt: null });
      const event = { instanceId: 'inst-2', at: 3, cause: 'create', attempt: 1, next: 'again' } as const;
      const call = { call: 'create', outcome: 'unknown', detail: `${EVIL}\nforged: OK`, tookMs: 1 };
      const tail = {
        detail: `${EVIL}\nforged: OK`,
        calls: [call],
        console: `${EVIL}\nforged: OK`,
        tookMs: 1,
      };
      await tx.history.step({ ...event, ...tail }, 'row');
    });
    await opened.close();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const callIn = (path: string, ...args: string[]) => {
    const product = args[0] === 'marketplace' ? 'marketplace' : 'berth';
    return runMain([...args, '--database', `sqlite:${join(path, `${product}.db`)}`]);
  };
  const call = (...args: string[]) => callIn(folder, ...args);
  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await call(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }

  it.each([...ofDatabases, 'status', 'marketplace status'])(
    '%s: -o json and -o yaml print the same data',
    async (name) => {
      const words = name.split(' ');
      const json = await run(...words, '-o', 'json');
      const yaml = await run(...words, '-o', 'yaml');
      expect(parse(yaml)).toEqual(JSON.parse(json));
      for (const text of [json, yaml, await run(...words)])
        expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u);
    },
  );

  it.each(ofDatabases)('%s says in a sentence that there is nothing', async (name) => {
    const { code, stdout } = await callIn(empty, ...name.split(' '));
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    if (lines.length === 1) expect(lines[0]).toMatch(/[a-z][.,:]/);
  });

  it('takes --json before -o, and `list` for `ls`', async () => {
    expect(await run('keys', 'list', '-o', 'yaml', '--json')).toBe(await run('keys', 'ls', '-o', 'json'));
  });

  it.each([
    'capacity',
    'platforms',
    'orphans',
    'cordons',
    'losses',
    'marketplace ledger',
    'marketplace losses',
  ])('%s without a verb is its ls', async (name) => {
    expect(await run(...name.split(' '), '-o', 'yaml')).toBe(
      await run(...name.split(' '), 'ls', '-o', 'yaml'),
    );
  });

  it('check-config prints its findings as data too', async () => {
    const file = join(folder, 'wrong.yaml');
    writeFileSync(file, 'servr: {}\n');
    const { code, stdout, stderr } = await runMain(['check-config', '--config', file, '-o', 'yaml']);
    expect([code, stderr]).toEqual([1, '']);
    expect(parse(stdout)).toMatchObject({ ok: false, findings: [{ file, line: 1, path: 'servr' }] });
  });

  it('refuses an unknown format in a sentence', async () => {
    expect(await call('keys', 'ls', '-o', 'xml')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'berth: --output xml: give one of table, wide, json, yaml: see `berth keys ls --help`.\n',
    });
  });

  it('shows the names of instances and of accounts', async () => {
    expect(await run('instances', 'ls', '--limit', '1')).toMatch(
      /^INSTANCE +NAME +STATUS .* ACCOUNT +AGE .*\ninst-1 +web +PROVISIONING .* ann +\d+y +-\nThere are more rows: give a --limit above 1\.\n$/,
    );
    expect(JSON.parse(await run('instances', 'ls', '--account', 'ann', '--json'))).toHaveLength(4);
  });

  it.each([
    ['keys ls', 'accounts ls'],
    ['instances events inst-2', 'instances events inst-1'],
  ])('%s reports more rows than --limit, except as JSON, and %s does not', async (longer, shorter) => {
    const only = (name: string, ...flags: string[]) => run(...name.split(' '), '--limit', '1', ...flags);
    expect(await only(longer)).toMatch(/\nThere are more rows: give a --limit above 1\.\n/);
    expect(JSON.parse(await only(longer, '--json'))).toHaveLength(1);
    expect(await only(shorter)).not.toContain('There are more rows');
  });

  it('shows the last events with --limit', async () => {
    const causes = async (...flags: string[]) =>
      JSON.parse(await run('instances', 'events', 'inst-2', '--json', ...flags)).map(
        ({ cause }: { cause: string }) => cause,
      );
    expect(await causes()).toEqual(['request', 'create']);
    expect(await causes('--limit', '1')).toEqual(['create']);
  });

  it('cuts a long name in a table only', async () => {
    const name = 'n'.repeat(255);
    const store = openSqliteStore(join(folder, 'berth.db'));
    const [owner] = await store.read.credentials.listAccounts();
    const long = instance('inst-9', { accountId: owner?.id ?? '', name, region: 'long' });
    await store.transact((tx) => tx.instances.insert(long));
    await store.close();
    expect(await run('instances', 'ls', '--region', 'long')).toContain(` ${'n'.repeat(39)}… `);
    expect(JSON.parse(await run('instances', 'ls', '--region', 'long', '--json'))).toMatchObject([{ name }]);
  });

  it('finds an instance by its name, and by its id first', async () => {
    expect(JSON.parse(await run('instances', 'show', 'web', '--json'))).toMatchObject({
      id: 'inst-1',
      account: 'ann',
    });
    expect(JSON.parse(await run('instances', 'show', 'inst-1', '--json'))).toMatchObject({ id: 'inst-1' });
    expect(JSON.parse(await run('instances', 'events', 'web', '--json'))).toHaveLength(1);
    expect(await run('instances', 'destroy', 'web', '--dry-run')).toMatch(
      /^inst-1 of account .* is PROVISIONING\.\nPlan: /,
    );
  });

  it.each(['show', 'events', 'retry', 'release', 'rm'])(
    'instances %s lists the candidates of an ambiguous name',
    async (verb) => {
      const { code, stdout, stderr } = await call('instances', verb, 'db');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        'berth: 2 instances match db: inst-2 (PROVISIONING, account ann, here), inst-3 (PROVISIONING, account ann, there). Give the id of the one that you mean.\n',
      );
    },
  );

  it.each(['show', 'events'])(
    'instances %s prints a hostile error of a platform as escapes',
    async (verb) => {
      for (const format of ['table', 'json', 'yaml']) {
        const text = await run('instances', verb, 'inst-2', '-o', format);
        expect(text).toMatch(/\\(u001b|e)\[2J/);
        expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u);
      }
    },
  );

  it('a hostile argument, name or key of a file reaches the terminal as escapes on one line', async () => {
    writeFileSync(join(folder, 'evil.yaml'), `${JSON.stringify(`${EVIL}\nforged: OK`)}: 1\n`);
    const config = await runMain(['check-config', '--config', join(folder, 'evil.yaml')]);
    for (const { code, stderr } of [
      config,
      await call('instances', 'show', `${EVIL}\nforged`),
      await call('instances', `${EVIL}\nforged`),
      await call('instances', 'ls', `--${EVIL}\nforged`),
    ]) {
      expect(code).toBe(1);
      expect(stderr).toMatch(/^[^\n]*\\u001b\[2J\\u009b1m\\u202eb\\u200b\\udb40\\udc41[^\n]*forged[^\n]*\n$/);
      expect(stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u);
    }
  });
});
