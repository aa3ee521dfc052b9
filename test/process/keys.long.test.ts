import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestSecret } from '../../src/keys/api-key.ts';
import { createClient, until } from '../support/http/http-client.ts';
import { sourceOfBerth } from '../support/processes/built-programs.ts';
import {
  BerthProcess,
  runBerth,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { runMain } from '../support/processes/run-main.ts';
import { instanceRequest } from '../support/rows/requests.ts';

// The server is a process of its own. Most commands run in this one, over connections of their own.
const folder = temporaryFolder();
const config = ['--config', writeFastConfig(folder.path)];
const data = join(folder.path, 'data');
let berth: ServingProcess;

beforeAll(async () => {
  berth = await startServing(config);
});
afterAll(async () => {
  await berth?.end('SIGKILL');
  folder[Symbol.dispose]();
});

/** A command that succeeds while the server runs. */
async function run(line: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await runMain([...line.split(' '), ...config], input);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function refuse(line: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await runMain([...line.split(' '), ...config], input);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  return stderr;
}

async function createKey(more = ''): Promise<{ id: string; api_key: string }> {
  return JSON.parse(await run(`keys create --json${more}`));
}

async function statusWith(key: string): Promise<number> {
  return (await createClient(berth.baseUrl, key).request('GET', '/instances')).status;
}

/** The row of a key in `berth keys ls`, by column. */
async function listed(id: string): Promise<Record<string, string>> {
  const [head = '', ...rows] = (await run('keys list -o wide')).trimEnd().split('\n');
  const row = rows.find((line) => line.startsWith(id)) ?? '';
  const starts = [...head.matchAll(/\S+(?: \S+)*/g)].map(({ 0: title, index }) => ({ title, index }));
  return Object.fromEntries(
    starts.map(({ title, index }, column) => [title, row.slice(index, starts[column + 1]?.index).trim()]),
  );
}

describe('berth instances, while the server runs', () => {
  it('a delete that another process orders shows and is carried out within seconds [sqlite-order-of-command]', async () => {
    const client = createClient(berth.baseUrl, berth.apiKey);
    const reply = await client.request('POST', '/instances', { body: instanceRequest() });
    const id = String(reply.body['id']);
    await client.waitFor(`/instances/${id}`, 'ONLINE');
    // Until here nothing was due, and now nothing is: a queue without a wake-up sleeps for a minute.
    const orderedAt = Date.now();
    expect(await run(`instances rm ${id} --yes`)).toContain('DESTROYING');
    await client.waitFor(`/instances/${id}`, 'DESTROYING', 'GONE');
    await client.waitFor(`/instances/${id}`, 'GONE');
    expect(Date.now() - orderedAt).toBeLessThan(45_000);
  });
});

describe('berth keys, while the server runs', () => {
  it('makes a key that works at once, and no more once it is revoked', async () => {
    const made = await runBerth(['keys', 'create', '--json', ...config]);
    const { id, api_key: key } = JSON.parse(made.stdout);
    expect(await statusWith(key)).toBe(200);
    const token = await createClient(berth.baseUrl, key).request('POST', '/auth/token', {
      body: { api_key: key },
    });
    const accessToken = String(token.body['access_token']);
    expect(await statusWith(accessToken)).toBe(200);
    expect(await run(`keys revoke ${id} --yes`)).toMatch(new RegExp(`^Key ${id} is revoked since .*Z\\.\n$`));
    for (const credential of [key, accessToken])
      await until(
        async () => (await statusWith(credential)) === 401,
        () => 'the credential still works',
      );
    expect(await listed(id)).toMatchObject({ ID: id, STATE: 'revoked' });
    expect(await run(`keys revoke ${id} --yes`)).toMatch(/ is revoked since /);
    expect(await statusWith(berth.apiKey)).toBe(200);
  });

  it('refuses what is not there or makes no sense, in one sentence', async () => {
    expect(await refuse('keys revoke key-nowhere --yes')).toBe(
      'berth: There is no key "key-nowhere": see `berth keys ls`.\n',
    );
    expect(await refuse('keys create --account nobody')).toBe(
      'berth: There is no account "nobody": see `berth accounts ls`.\n',
    );
    for (const when of ['yesterday', '2001-01-01T00:00:00Z', '0d', '9999999d'])
      expect(await refuse(`keys create --expires ${when}`)).toMatch(
        /^berth: --expires .*: (that is in the past; )?give (minutes, hours or days|a future time,) such as .*\n$/,
      );
  });
});

describe('berth accounts, while the server runs', () => {
  it('sets a password that buys tokens, until it is set again', async () => {
    const client = createClient(berth.baseUrl, '');
    const buy = (password: string) =>
      client.request('POST', '/auth/token', { body: { username: 'tenant-c', password } });
    await run('accounts create tenant-c');
    expect((await buy('a password to try')).status).toBe(401);
    const command = ['accounts', 'set-password', 'tenant-c', ...config];
    expect(await runBerth(command, { input: 'correct horse battery\n' })).toMatchObject({
      code: 0,
      stdout: 'The password of account tenant-c is set.\n',
      stderr: '',
    });
    const token = await buy('correct horse battery');
    expect(token).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 3600 } });
    const accessToken = String(token.body['access_token']);
    expect(await statusWith(accessToken)).toBe(200);
    expect((await buy('correct horse batterz')).status).toBe(401);
    await run('accounts set-password tenant-c', 'another long password');
    await until(
      async () => (await statusWith(accessToken)) === 401,
      () => 'the token outlives its password',
    );
    expect((await buy('another long password')).status).toBe(200);
    expect(await run('accounts list')).toMatch(/tenant-c +0 +yes /);
  });

  it('refuses a password that is too short, none, and an unknown account', async () => {
    for (const input of ['short\n', ''])
      expect(await refuse('accounts set-password default', input)).toBe(
        'berth: A password needs at least 12 characters.\n',
      );
    expect(await refuse('accounts set-password nobody', 'correct horse battery\n')).toMatch(
      /^berth: There is no account "nobody": see/,
    );
  });
});

describe('what is kept of a key', () => {
  it('is its digest, prefix and last four, nowhere the key', async () => {
    const { id, api_key: key } = await createKey(' --label canary');
    expect(await statusWith(key)).toBe(200);
    const list = await run('keys list');
    expect(list).toContain(`${key.slice(0, 10)}…${key.slice(-4)}`);
    expect(list).not.toContain(key.slice(6, 49));
    const db = new Database(join(data, 'berth.db'), { readonly: true });
    const row = db.prepare('SELECT digest, prefix, last_four FROM api_keys WHERE id = ?').get(id);
    db.close();
    expect(row).toEqual({ digest: digestSecret(key), prefix: key.slice(0, 10), last_four: key.slice(-4) });
    for (const file of readdirSync(data)) {
      const bytes = readFileSync(join(data, file));
      for (const secret of [key, key.slice(6, 49), berth.apiKey])
        expect(bytes.includes(secret), `${secret} in ${file}`).toBe(false);
    }
  });

  it('with the time of its last use, at the latest when the server ends', async () => {
    const { id, api_key: key } = await createKey();
    expect(await listed(id)).toMatchObject({ 'LAST USED': '-' });
    const before = Date.now();
    expect(await statusWith(key)).toBe(200);
    const { stdout, stderr } = await berth.end('SIGTERM');
    expect(stdout + stderr).not.toContain(key);
    const { 'LAST USED': lastUsed = '' } = await listed(id);
    expect(Date.parse(lastUsed)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(lastUsed)).toBeLessThanOrEqual(Date.now());
  });
});

it('the commands that a server prints when it is ready work where it was started', async () => {
  using own = temporaryFolder();
  const args = ['serve', '--port', '0', '--config', writeFastConfig(own.path)];
  await using server = new BerthProcess(args, { cwd: own.path, entry: sourceOfBerth });
  const printed = await server.waitForOutput((stdout) => (stdout.includes('Try it:') ? stdout : undefined));
  const paste = (verb: string): string => {
    const [, command = ''] = new RegExp(`^ +(node .*${verb}.*)$`, 'm').exec(printed) ?? [];
    const words = command.replace(/^node /, `'${process.execPath}' `);
    return execFileSync('sh', ['-c', words], { cwd: own.path, encoding: 'utf8' });
  };
  expect(paste('operators create')).toMatch(/berthop_\w+/);
  expect(paste('keys create')).toMatch(/berth_\w+/);
});
