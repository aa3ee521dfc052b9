import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadBerth } from '../../test/documents/command-line.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { instance } from '../../test/support/rows/orchestrator-rows.ts';
import { openMarketplaceSqliteStore } from '../store/marketplace/sqlite/store.ts';
import { openSqliteStore } from '../store/sqlite/store.ts';
import { verbs } from './verbs.ts';

/** Every command of the suite is about a target, with its own flags and words. */
const berth = (await loadBerth()).commands.filter((command) => command.name() !== 'conformance');

const nameOf = (command: Command): string =>
  command.parent === null ? '' : `${nameOf(command.parent)} ${command.name()}`.trim();
const below = (command: Command): Command[] => [command, ...command.commands.flatMap(below)];
const all = berth.flatMap(below);
const leaves = all.filter(({ commands }) => commands.length === 0);
/** Except for `marketplace`, which contains nouns, each command with subcommands is a noun. These are their verbs. */
const verbsOfNouns = all.filter(
  ({ parent }) => parent !== null && parent.parent !== null && parent.name() !== 'marketplace',
);

const flagOf = (command: Command, long: string) => command.options.find((option) => option.long === long);

describe('one vocabulary', () => {
  it.each(verbsOfNouns.map((command) => [nameOf(command), command] as const))(
    '%s is a verb of the table, with its aliases',
    (_name, command) => {
      expect(Object.keys(verbs)).toContain(command.name());
      expect(command.aliases()).toEqual(verbs[command.name()]);
    },
  );

  it('has no verb without a command', () => {
    expect(
      Object.keys(verbs).filter((verb) => !verbsOfNouns.some((command) => command.name() === verb)),
    ).toEqual([]);
  });

  it.each(
    leaves
      .filter((command) => nameOf(command) !== 'completion')
      .map((command) => [nameOf(command), command] as const),
  )('%s prints with -o json|yaml|table, and --json', (_name, command) => {
    expect(flagOf(command, '--output')).toMatchObject({ short: '-o', argChoices: ['table', 'json', 'yaml'] });
    expect(flagOf(command, '--json')?.attributeName()).toBe('output');
  });

  it('describes and parses a flag alike wherever it is', () => {
    for (const long of ['--limit', '--json', '--output', '--yes', '--database', '--find']) {
      const meanings = all.flatMap((command) => {
        const option = flagOf(command, long);
        const isOwn = long === '--database' || long === '--find';
        return option === undefined ? [] : [isOwn ? option.flags : `${option.flags} ${option.description}`];
      });
      expect([...new Set(meanings)]).toHaveLength(1);
    }
  });

  it.each([
    ...leaves
      .filter((command) => command.name() === 'ls')
      .map(nameOf)
      // The configuration limits the length of these two lists.
      .filter((name) => name !== 'capacity ls' && name !== 'platforms ls'),
    'instances events inst-1',
  ])('%s takes a --limit from 1', async (name) => {
    const { code, stderr } = await runMain([...name.split(' '), '--limit', '0']);
    expect([code, stderr]).toEqual([1, 'berth: --limit 0: give a whole number from 1.\n']);
  });
});

/** Creates a database of each product, without rows. */
async function emptyDatabases(): Promise<AsyncDisposable & { of(command: string): string }> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-empty-'));
  await openSqliteStore(join(folder, 'berth.db')).close();
  await openMarketplaceSqliteStore(join(folder, 'marketplace.db')).close();
  return {
    of: (command) =>
      `sqlite:${join(folder, command.startsWith('marketplace ') ? 'marketplace.db' : 'berth.db')}`,
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
  };
}

describe('on a database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-vocabulary-'));
  const EVIL = 'a\u001b[2J\u009b1m\u202eb\u200b\u{e0041}: "x" # \\';

  beforeAll(async () => {
    const marketplace = openMarketplaceSqliteStore(join(folder, 'marketplace.db'));
    await marketplace.close();
    const store = openSqliteStore(join(folder, 'berth.db'));
    await store.close();
    await run('accounts', 'add', 'ann');
    await run('keys', 'create', '--account', 'ann', '--label', EVIL);
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
      await tx.history.step({ ...event, ...tail }, true);
    });
    await opened.close();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const call = (...args: string[]) => {
    const product = args[0] === 'marketplace' ? 'marketplace' : 'berth';
    return runMain([...args, '--database', `sqlite:${join(folder, `${product}.db`)}`]);
  };
  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await call(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }

  const listings = leaves
    .filter((command) => command.name() === 'ls' && nameOf(command) !== 'marketplace providers ls')
    .map(nameOf);

  it.each([...listings, 'status', 'marketplace status'])(
    '%s: -o json and -o yaml print the same data',
    async (name) => {
      const words = name.split(' ');
      const json = await run(...words, '-o', 'json');
      const yaml = await run(...words, '-o', 'yaml');
      expect(await run(...words, '-o', 'yaml', '--json')).toBe(json);
      expect(parse(yaml)).toEqual(JSON.parse(json));
      for (const text of [json, yaml, await run(...words)])
        expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u);
    },
  );

  it.each(listings)('%s says in a sentence that there is nothing', async (name) => {
    await using empty = await emptyDatabases();
    const { code, stdout } = await runMain([...name.split(' '), '--database', empty.of(name)]);
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    if (lines.length === 1) expect(lines[0]).toMatch(/[a-z][.,:]/);
  });

  it.each(listings.filter((name) => name !== 'status'))('%s is also `list`', async (name) => {
    expect(await run(...name.split(' ').slice(0, -1), 'list', '--json')).toBe(
      await run(...name.split(' '), '--json'),
    );
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
      stderr: 'berth: --output xml: give one of table, json, yaml: see `berth keys ls --help`.\n',
    });
  });

  it('shows the names of instances and of accounts', async () => {
    expect(await run('instances', 'ls', '--limit', '1')).toMatch(
      /^ID +NAME +STATUS .* ACCOUNT .*\ninst-1 +web +PROVISIONING .* ann +1970-\S+\nThere are more rows: give a --limit above 1\.\n$/,
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
    expect(await run('instances', 'destroy', 'web')).toMatch(
      /^inst-1 of account .* is PROVISIONING\.\nA dry run/,
    );
  });

  it.each(['show', 'events', 'retry', 'release', 'rm'])(
    'instances %s lists the candidates of an ambiguous name',
    async (verb) => {
      const { code, stdout, stderr } = await call('instances', verb, 'db');
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toBe(
        'berth: 2 instances are named db: inst-2 (PROVISIONING, account ann, here), inst-3 (PROVISIONING, account ann, there). Give the id of the one that you mean.\n',
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
