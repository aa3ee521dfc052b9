import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startServer } from '../../../test/support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../../../test/support/orchestrator.ts';
import { runMain } from '../../../test/support/processes/run-main.ts';
import { createCertificates } from '../../compose/sandbox/certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-context-'));
const file = join(folder, 'config', 'contexts.yaml');
const keyFile = join(folder, 'operator.key');
const caFile = join(folder, 'ca.pem');

let berth: TestOrchestrator;
let admin: Awaited<ReturnType<typeof startServer>>;
let api: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  berth = await startTestOrchestrator();
  writeFileSync(keyFile, `${await berth.addOperator('ann')}\n`);
  const { ca, valid } = createCertificates(['127.0.0.1'], Date.now());
  writeFileSync(caFile, ca);
  const tls = { cert: Buffer.from(valid.cert), key: Buffer.from(valid.key) };
  admin = await startServer({ listener: berth.admin.listener }, { tls });
  api = await startServer(berth);
});
afterAll(async () => {
  await admin[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
  await berth[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
beforeEach(() => vi.stubEnv('BERTH_CONTEXTS', file));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(join(folder, 'config'), { recursive: true, force: true });
});

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function refusal(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  return stderr;
}

const adminUrl = () => `https://127.0.0.1:${admin.port}`;
const add = (name: string, url: string, ...flags: string[]) =>
  run('context', 'add', name, url, '--key-file', keyFile, ...flags);

async function useServer(): Promise<void> {
  await add('prod', adminUrl(), '--ca-file', caFile);
  await run('context', 'use', 'prod');
}

describe('contexts', () => {
  it('are kept in a file of its owner alone, without the keys [context-file]', async () => {
    expect(await add('prod', 'https://berth.example.com:9080/')).toBe(
      'The context prod is added. Use it: berth context use prod\n',
    );
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toBe(
      `contexts:\n  prod:\n    kind: operator\n    url: https://berth.example.com:9080\n    key_file: ${keyFile}\n`,
    );
    expect(await run('context')).toMatch(/^NAME +CURRENT +KIND +URL\nlocal +yes +database +-\nprod +no +op/);
    expect(await run('context', 'use', 'prod')).toBe('The context prod is in use.\n');
    expect(JSON.parse(await run('context', 'ls', '--json'))[1]).toMatchObject({
      name: 'prod',
      current: true,
    });
    expect(await run('context', 'show')).toMatch(/^name: prod\nkind: operator\nurl: https:.*\nkey file: \//);
    expect(await run('context', 'rm', 'prod')).toMatch('removed. The context local is in use now.');
    expect(await run('context', 'show')).toMatch(/^local: the database/);
  });

  it.each([
    [['local', 'https://a.example'], /local is taken/],
    [['A b', 'https://a.example'], /cannot name a context/],
    [['a', 'berth.example'], /not the URL of a server: give one such as https/],
    [['a', 'http://192.0.2.1:9080'], /plain HTTP to another machine.*give an https URL/],
    [['a', 'https://me:secret@a.example'], /has a user/],
    [['a', 'https://a.example/console'], /has a path: give the URL of the admin listener/],
    [['a', 'https://a.example', '--ca-file', '/nowhere/ca'], /CA file \/nowhere\/ca .*no such file/],
    [['a', 'https://a.example', '--account-key-file', keyFile], /either --key-file.*or --account-key-file/],
  ])('are refused: %j', async (args, sentence) => {
    expect(await refusal('context', 'add', ...args, '--key-file', keyFile)).toMatch(sentence);
    expect(existsSync(file)).toBe(false);
  });

  it('need a key', async () => {
    expect(await refusal('context', 'add', 'a', 'https://a.example')).toMatch(/Give either --key-file/);
    const absent = await refusal('context', 'add', 'a', 'https://a.example', '--key-file', '/nowhere');
    expect(absent).toMatch(
      /The key file \/nowhere of the context a cannot be read \(there is no such file\)/,
    );
  });

  it('are named in the refusal of an unknown one, and a damaged file in its own', async () => {
    await add('prod', 'https://berth.example.com');
    expect(await refusal('accounts', 'ls', '--context', 'pord')).toMatch(
      'There is no context pord: give one of local, prod,',
    );
    writeFileSync(file, 'contexts: { prod: { url: 7 } }\n');
    expect(await refusal('context', 'ls')).toMatch(
      /contexts\.yaml:1:\d+ contexts\.prod\.kind is required: .* Correct the file, or/,
    );
  });
});

describe('a command through a server', () => {
  it('reads and acts there, in the name of the key [command-through-server]', async () => {
    await useServer();
    expect(await run('accounts', 'create', 'acme')).toMatch(/^Account acme \(acct-\w+\) is created/);
    expect((await run('accounts', 'ls')).split('\n')[2]).toMatch(/^acme /);
    const key = JSON.parse(await run('keys', 'create', '--account', 'acme', '--expires', '7d', '--json'));
    expect((await berth.request('GET', '/instances', { key: key.api_key })).status).toBe(200);
    expect(await run('keys', 'revoke', key.id, '--yes')).toMatch(/is revoked since/);
    const [latest] = JSON.parse(await run('audit', 'ls', '--subject', key.id, '--json'));
    expect(latest).toMatchObject({ action: 'key.revoke', actor: 'ann', source: 'api' });
  });

  it('prints figures of the server, also as CSV', async () => {
    await useServer();
    expect(await run('figures')).toMatch(/^Units, units\.\nAT /);
    expect(await run('figures', '--csv')).toMatch(/^at,/);
  });

  it('asks for what only the server knows [capacity-through-server]', async () => {
    await useServer();
    const { placements, is_counted: isCounted } = JSON.parse(await run('capacity', '--json'));
    expect(isCounted).toBe(true);
    expect(placements[0].available).toBeGreaterThan(0);
    expect(await run('capacity')).not.toMatch(/\?/);
    expect(await run('status')).toMatch(/default/);
    const local = ['--context', 'local', '--database', `sqlite:${berth.databasePath}`];
    expect(await run('capacity', ...local)).toMatch(/ \?\n(.*\n)*\? is known only to a running server/);
  });

  it('reads a list page by page up to its limit', async () => {
    await useServer();
    for (let count = 0; count < 3; count++) await run('accounts', 'create', `page-${count}`);
    const all = JSON.parse(await run('audit', 'ls', '--action', 'account.create', '--json'));
    const some = await run('audit', 'ls', '--action', 'account.create', '--limit', '2');
    expect(all.length).toBeGreaterThan(2);
    expect(some.trimEnd().split('\n')).toHaveLength(4);
    expect(some).toMatch('There are more rows: give a --limit above 2.');
  });

  it('prints the refusal of the server', async () => {
    await useServer();
    expect(await refusal('keys', 'revoke', 'key-none', '--yes')).toMatch(/^berth: There is no key/);
    expect(await refusal('keys', 'ls', '--context', 'local', '--database', 'sqlite:/nowhere/b.db')).toMatch(
      'There is no database /nowhere/b.db yet',
    );
  });

  it('reloads the catalog of the server', async () => {
    await useServer();
    expect(await run('reload')).toMatch(/has reloaded .*halyard\.yaml: 0 added, 0 removed, 0 changed/);
  });

  it('refuses what needs the database', async () => {
    await useServer();
    expect(await refusal('accounts', 'create', 'x', '--id', 'acct-1')).toMatch('--id needs the database');
    expect(await refusal('accounts', 'set-password', 'x')).toMatch(
      'This command needs the database, and the context prod is a server',
    );
    expect(await refusal('keys', 'ls', '--context', 'prod', '--database', 'sqlite:b.db')).toMatch(
      '--database is for the context local, and --context is prod: leave one of them out',
    );
  });

  it.each([['backup', 'b.db'], ['restore', 'b.db'], ['upgrade'], ['check-database']])(
    'refuses %s, which would use another database',
    async (...args) => {
      await useServer();
      expect(await refusal(...args)).toMatch('the context prod is a server');
      expect(await refusal(...args, '--database', 'sqlite:/nowhere/b.db')).toMatch(
        /^berth: There is no (database|backup|folder) \/nowhere/,
      );
    },
  );

  it.each<[string, () => string, string[], RegExp]>([
    ['no server', () => 'http://127.0.0.1:1', [], /The server http:\S+ of the context a does not answer/],
    ['an unknown authority', adminUrl, [], /certificate of .* is not trusted \(\w+\): .*add .* --ca-file/],
    ['the API for tenants', () => `http://127.0.0.1:${api.port}`, [], /not as an admin listener of Berth/],
  ])('says what is wrong with %s', async (_what, url, flags, sentence) => {
    await add('a', url(), ...flags);
    expect(await refusal('accounts', 'ls', '--context', 'a')).toMatch(sentence);
  });

  const refusing = (status: number, code: string) => [
    status,
    JSON.stringify({ error: { code, message: 'Your role is viewer.' } }),
  ];
  it.each([
    [
      ...refusing(403, 'forbidden'),
      /^berth: http:\S+ \(context a\) answered 403 forbidden: Your role is viewer\./,
    ],
    [...refusing(409, 'invalid_state'), /^berth: Your role is viewer\.\n$/],
    [200, '<html>', /^berth: The answer of http:\S+ \(context a\) is not one that this program knows/],
    [502, '<html>', /answered 502, and not as an admin listener of Berth does/],
    [302, '', /answered 302, and not as an admin listener of Berth does/],
  ] as [number, string, RegExp][])(
    'says what is wrong with the answer %i %s',
    async (status, body, sentence) => {
      const listener: RequestListener = (_request, response) => void response.writeHead(status).end(body);
      await using server = await startServer({ listener });
      await add('a', `http://127.0.0.1:${server.port}`);
      expect(await refusal('accounts', 'ls', '--context', 'a')).toMatch(sentence);
    },
  );

  it('says what is wrong with a key that the server does not know', async () => {
    const other = join(folder, 'other.key');
    writeFileSync(other, 'not-a-key');
    await run('context', 'add', 'a', adminUrl(), '--key-file', other, '--ca-file', caFile);
    expect(await refusal('accounts', 'ls', '--context', 'a')).toMatch(
      /does not accept the key of the context a \(.*other\.key\): create one .*`berth operators create`/,
    );
  });

  it('is refused by the server of the other product, and by a context of another kind [wrong-product]', async () => {
    await add('shop', adminUrl(), '--ca-file', caFile, '--marketplace');
    expect(await refusal('marketplace', 'teams', 'ls', '--context', 'shop')).toMatch(
      'This is the admin listener of an orchestrator, not of a marketplace',
    );
    expect(await refusal('accounts', 'ls', '--context', 'shop')).toMatch(
      "The context shop has the key of a marketplace's operator, and this command needs the key of an operator: add one",
    );
  });
});
