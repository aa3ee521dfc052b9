import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { BerthProcess, runBerth, startServing, temporaryFolder } from '../support/processes/process.ts';
import { type InstalledPackage, installPackage } from './install.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
let installed: InstalledPackage;

beforeAll(async () => {
  installed = await installPackage(folder.path);
});
afterAll(() => folder[Symbol.dispose]());

async function get(url: string | URL, key: string): Promise<string> {
  const reply = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
  const body = await reply.text();
  expect(reply.status, `${url} answers ${body.slice(0, 200)}`).toBe(200);
  return body;
}

it('serves, from an empty folder; the suite alone, without a package beside it, logs in to its machines', async () => {
  const work = at('serve');
  mkdirSync(work);
  await using serving = await startServing(['--database', 'sqlite:berth.db'], {
    cwd: work,
    entry: installed.main,
  });
  const { baseUrl, apiKey } = serving;
  const adminUrl = String(JSON.parse(serving.stdout).admin_url);
  expect(JSON.parse(await get(`${baseUrl}/availability`, apiKey))).toHaveProperty('configurations');
  for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
    expect((await get(new URL(`/docs/${name}`, baseUrl), apiKey)).length).toBeGreaterThan(1_000);
  expect(await get(new URL('/openapi.json', baseUrl), apiKey)).toContain('"/instances"');
  expect(await get(new URL('/metrics', adminUrl), apiKey)).toContain('berth_');

  // Nothing but the tarball: no package that could be loaded, and no native module that may be.
  const suite = at('suite');
  mkdirSync(suite);
  execFileSync('tar', ['-xzf', installed.tarball, '-C', suite]);
  const main = join(suite, 'package/dist/main.js');
  const ran = await runBerth(
    ['conformance', baseUrl, '--poll-interval-ms', '200', '--yes', '--state-dir', at('state')],
    { cwd: suite, entry: main, env: { BERTH_API_KEY: apiKey, NODE_OPTIONS: '--no-addons' } },
  );
  expect(ran.stdout, ran.stderr).toMatch(/^CONFORMANT: /);
  expect(ran.code).toBe(0);
  expect(await serving.end()).toMatchObject({ code: 0 });
  // The server itself does need its native module: the suite would have failed for it too.
  const without = await runBerth(['serve', '--port', '0'], { cwd: suite, entry: main });
  expect(without.code).not.toBe(0);
  expect(without.stderr).toContain("'better-sqlite3'");
});

it('serves a marketplace, whose provider is gone; manages its users and keys, and verifies its books', async () => {
  const config = at('marketplace.yaml');
  // Nobody answers there: a provider that is gone keeps nothing else from working.
  writeFileSync(
    config,
    `database: sqlite:marketplace.db
providers:
  - { id: provider-d, base_url: http://127.0.0.1:9/v1, api_key_env: PROVIDER_KEY, allow_private: true }
`,
  );
  const options = { entry: installed.main, env: { PROVIDER_KEY: 'of-nobody' } };
  await using serving = new BerthProcess(
    ['marketplace', '--config', config, '--port', '0', '--json'],
    options,
  );
  const line = await serving.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { base_url: baseUrl, admin_url: adminUrl } = JSON.parse(line);
  const operate = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runBerth(['marketplace', ...args, '--config', config], options);
    expect(code, stderr).toBe(0);
    return stdout;
  };
  await operate('users', 'add', 'ci@example.com', '--allow-keys');
  const { api_key: key } = JSON.parse(await operate('keys', 'create', 'ci@example.com', '--json'));
  expect(JSON.parse(await get(new URL('/api/teams', baseUrl), key))).toHaveLength(1);
  for (const path of ['/api/gpu-offers', '/api/config/system']) await get(new URL(path, baseUrl), key);
  await get(new URL('/metrics', adminUrl), key);
  await operate('verify-ledger');
  expect(await serving.end()).toMatchObject({ code: 0 });
});

it('starts as `berth`, and its libraries can be imported, run and checked by a program that depends on it', () => {
  const berth = join(installed.folder, 'node_modules/.bin/berth');
  expect(execFileSync(berth, ['--version'], { encoding: 'utf8' })).toMatch(/^\d+\.\d+\.\d+\n$/);
  const used = execFileSync(join(root, 'test/package/run.sh'), [installed.folder], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(used).toContain('imported and used');
});

it('names the source file and line in the stack of a fault', async () => {
  const preload = at('no-output.mjs');
  writeFileSync(preload, "process.stdout.write = () => { throw new Error('no output'); };");
  const { stderr } = await runBerth(['check-config'], {
    cwd: folder.path,
    entry: installed.main,
    env: { NODE_OPTIONS: `--import=${preload}` },
  });
  const [, place = '', line = ''] = /printLine \((.*):(\d+):\d+\)/.exec(stderr) ?? [];
  const source = 'src/runtime/print.ts';
  expect(place, stderr).toBe(join(installed.folder, 'node_modules/berth', source));
  const text = readFileSync(join(root, source), 'utf8').split('\n')[Number(line) - 1];
  expect(text).toContain('process.stdout.write(');
});

it('brings the licence of every package that is inside', () => {
  const dist = dirname(installed.main);
  const notices = readFileSync(join(dist, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  for (const name of ['hono', 'zod', 'drizzle-orm', 'ssh2', 'pg', 'undici', 'pino', 'swagger-ui-dist'])
    expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
  expect(existsSync(join(installed.folder, 'node_modules/drizzle-orm'))).toBe(false);
});
