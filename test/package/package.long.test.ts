import { execFile, execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BerthProcess, runBerth, startServing, temporaryFolder } from '../support/processes/process.ts';
import {
  type InstalledPackage,
  installJest,
  installNode22,
  installPackage,
  installTypeScript,
} from './install.ts';
import { readJob } from './workflow.ts';

vi.setConfig({ hookTimeout: 900_000 });

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
let installed: InstalledPackage;
let node22: string | undefined;

beforeAll(async () => {
  installed = await installPackage(folder.path);
  node22 = await installNode22(folder.path);
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
  // Nothing answers at that address: everything else works without the provider.
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

/** A test for Jest: with all timers fake, `process.nextTick` and `queueMicrotask` too, a machine comes ONLINE. */
const JEST_TEST = `
import { createSandbox } from 'berth/sandbox';

test.each(['virtual', 'real'])('a sandbox with a %s clock works while Jest’s timers are fake', async (clock) => {
  import.meta.jest.useFakeTimers();
  await using sandbox = await createSandbox({ clock });
  const account = await sandbox.account();
  const { baseUrl, apiKey } = account.providers['provider-a'];
  const headers = { authorization: 'Bearer ' + apiKey, 'content-type': 'application/json' };
  const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test';
  const body = JSON.stringify({ configuration_id: 'a-cpu-8x32', region: 'us-dallas', ssh_keys: [key] });
  const made = await sandbox.fetch(baseUrl + '/instances', { method: 'POST', headers, body });
  const { id } = await made.json();
  await sandbox.clock.advance(60_000);
  const read = await sandbox.fetch(baseUrl + '/instances/' + id, { headers });
  expect(await read.json()).toMatchObject({ status: 'ONLINE' });
});
`;

it('has a sandbox that works while Jest’s timers are fake', async ({ skip }) => {
  const jest = await installJest(folder.path, installed.tarball);
  if (jest === undefined) return skip('npm’s registry, from which Jest comes, is not reached');
  writeFileSync(join(jest, 'sandbox.test.mjs'), JEST_TEST);
  const settings = JSON.stringify({ rootDir: jest, testMatch: ['**/*.test.mjs'], transform: {} });
  const ran = await promisify(execFile)(
    process.execPath,
    ['--experimental-vm-modules', join(jest, 'node_modules/jest/bin/jest.js'), '--config', settings],
    { cwd: jest },
  );
  expect(ran.stderr).toMatch(/^Tests: +2 passed, 2 total$/m);
});

it.for([
  ['5.6', ''],
  ['5.6', ', "exactOptionalPropertyTypes": true, "module": "esnext", "moduleResolution": "bundler"'],
  ['7', ''],
  ['7', ', "exactOptionalPropertyTypes": true, "module": "esnext", "moduleResolution": "bundler"'],
])(
  'has declarations without an error under TypeScript %s%s',
  async ([version = '', options = ''], { skip }) => {
    const tsc = await installTypeScript(folder.path, version);
    if (tsc === undefined) return skip('npm’s registry, from which TypeScript comes, is not reached');
    const work = installed.folder;
    for (const name of ['node_modules/vitest', 'node_modules/@types'])
      if (!existsSync(join(work, name))) symlinkSync(join(root, name), join(work, name));
    const { exports } = JSON.parse(readFileSync(join(work, 'node_modules/berth/package.json'), 'utf8'));
    const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'));
    expect(entries).toContain('./sandbox');
    const imports = entries.map((name, at) => `export * as e${at} from '${name.replace('.', 'berth')}';`);
    writeFileSync(join(work, 'entries.mts'), [...imports, 'export const wrong: string = 1;'].join('\n'));
    writeFileSync(
      join(work, 'tsconfig.entries.json'),
      `{ "compilerOptions": { "strict": true, "noEmit": true, "target": "es2022", "module": "nodenext"${options} }, "files": ["entries.mts"] }`,
    );
    const { stdout } = spawnSync(tsc, ['-p', 'tsconfig.entries.json', '--pretty', 'false'], {
      cwd: work,
      encoding: 'utf8',
    });
    // Others may have errors of their own: hono's declarations need TypeScript 5.7.
    const ours = stdout.split('\n').filter((line) => /^(entries\.mts|node_modules\/berth\/)/.test(line));
    expect(ours).toEqual([
      `entries.mts(${entries.length + 1},14): error TS2322: Type 'number' is not assignable to type 'string'.`,
    ]);
  },
);

it('has the pictures of its README, and takes at most 8 MB of a disk', () => {
  const own = join(installed.folder, 'node_modules/berth');
  const pictures = readFileSync(join(own, 'README.md'), 'utf8').matchAll(/!\[[^\]]*\]\(([^)]+)\)/g);
  const known = [...pictures].map(([, path = '']) => [path, existsSync(join(own, path))]);
  expect(known).toEqual([['docs/console/fleet.png', true]]);
  const files = readdirSync(own, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = files.map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
  expect(sizes.length).toBeGreaterThan(100);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(8_000_000);
});

it('brings the licence of every package that is inside', () => {
  const dist = dirname(installed.main);
  const notices = readFileSync(join(dist, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  for (const name of ['hono', 'zod', 'drizzle-orm', 'ssh2', 'pg', 'undici', 'pino'])
    expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
  expect(existsSync(join(installed.folder, 'node_modules/drizzle-orm'))).toBe(false);
});

/** What finds the suite among the commands; all else of src/ is a server's. */
const OF_THE_COMMAND =
  /^src\/(berth|main|cli\/(commands|program|similar|verbs)|config\/package-root|runtime\/(print|signals|sources)|ports\/errors)\.ts$/;
const NO_NODE_22 = 'npm’s registry, from which Node 22 comes, is not reached';

describe('on Node 22', () => {
  it('the suite runs, and loads nothing of a server and no native module', async ({ skip }) => {
    if (node22 === undefined) return skip(NO_NODE_22);
    await using serving = await startServing(['--database', 'sqlite:suite.db'], { cwd: folder.path });
    const recorder = new URL('../support/processes/print-modules.ts', import.meta.url).href;
    const state = ['--state-dir', at('state-22')];
    const ran = await runBerth(['conformance', serving.baseUrl, '--poll-interval-ms', '200', ...state], {
      cwd: folder.path,
      node: node22,
      entry: installed.main,
      env: { BERTH_API_KEY: serving.apiKey, NODE_OPTIONS: `--no-addons --import=${recorder}` },
    });
    expect(ran.stdout, ran.stderr).toMatch(/^CONFORMANT: /);
    expect(ran.code).toBe(0);
    const sources = sourcesOf(JSON.parse(ran.stderr.trimEnd().split('\n').at(-1) ?? ''));
    expect(sources).toContain('conformance/cli.ts');
    expect(sources.filter((path) => path.startsWith('src/') && !OF_THE_COMMAND.test(path))).toEqual([]);
  });

  it('the help is there at once, and the list; a server says which Node it wants', async ({ skip }) => {
    if (node22 === undefined) return skip(NO_NODE_22);
    const options = { cwd: folder.path, node: node22, entry: installed.main };
    expect(await runBerth(['conformance', 'list'], options)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('INS-CREATE-001'),
      stderr: '',
    });
    expect(await runBerth(['serve', '--port', '0'], options)).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: expect.stringMatching(
        /^berth: Berth needs Node 24\.2 or later, and this is 22\..*: put a newer/,
      ),
    });
    const least = (...args: string[]) =>
      Math.min(...Array.from({ length: 5 }, () => cpuSeconds(node22 ?? '', ...args)));
    // Against a bare start of Node, since machines differ: 9 to 12 times as much.
    expect(least(installed.main, 'conformance', '--help')).toBeLessThanOrEqual(18 * least('-e', '0'));
  });

  it('the sandbox runs, in process and as a command', async ({ skip }) => {
    if (node22 === undefined) return skip(NO_NODE_22);
    const script = at('installed/sandbox-22.mjs');
    writeFileSync(
      script,
      `import { createSandbox } from 'berth/sandbox';
const sandbox = await createSandbox({ marketplace: true });
const { baseUrl, apiKey } = sandbox.provider('a');
const { status } = await sandbox.fetch(baseUrl + '/availability', { headers: { authorization: 'Bearer ' + apiKey } });
await sandbox.clock.advance(86_400_000);
await sandbox.close();
console.log(process.versions.node.split('.')[0], status);`,
    );
    expect(execFileSync(node22, [script], { encoding: 'utf8' })).toBe('22 200\n');
    const options = { cwd: folder.path, node: node22, entry: installed.main };
    await using serving = new BerthProcess(['sandbox', '--port', '0', '--json'], options);
    const line = await serving.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
    expect(JSON.parse(line)).toHaveProperty('providers');
  });

  it('the recipe for CI runs, with the package that is to be published', async ({ skip }) => {
    if (node22 === undefined) return skip(NO_NODE_22);
    // Its level buys nothing: the run of level lifecycle is that of `conformance:pace`.
    await using serving = await startServing(['--database', 'sqlite:ci.db'], { cwd: folder.path });
    const work = at('ci');
    mkdirSync(work);
    const { env, steps } = readJob(join(root, 'examples/ci/conformance.yml'));
    const given = {
      ...env,
      BASE_URL: serving.baseUrl,
      LEVEL: 'read-only',
      BERTH: installed.tarball,
      BERTH_API_KEY: serving.apiKey,
    };
    expect(Object.values(given).filter((value) => /[<>]|\$\{\{/.test(value))).toEqual([]);
    const [setUp, ...others] = steps;
    expect(setUp?.with).toEqual({
      'node-version': Number(execFileSync(node22, ['-p', 'process.versions.node.split(".")[0]'])),
    });
    const shell = {
      cwd: work,
      env: {
        ...process.env,
        ...given,
        PATH: `${dirname(node22)}:${process.env['PATH']}`,
        npm_config_cache: at('npm-cache'),
      },
    };
    for (const { run } of others)
      if (run !== undefined) await promisify(execFile)('bash', ['-eo', 'pipefail', '-c', run], shell);
    const kept = join(
      work,
      String(others.find(({ uses }) => uses?.startsWith('actions/upload-artifact@'))?.with?.['path']),
    );
    expect(readdirSync(kept).toSorted()).toEqual([
      'badge.svg',
      'report.html',
      'report.json',
      'report.xml',
      'run.ndjson',
    ]);
    expect(JSON.parse(readFileSync(join(kept, 'report.json'), 'utf8'))).toMatchObject({
      outcome: 'CONFORMANT',
      level: 'read-only',
    });
  });
});

/** The source files of which these chunks are made. */
function sourcesOf(chunks: readonly string[]): string[] {
  return chunks.flatMap((chunk) => {
    const map = join(root, `${chunk}.map.gz`);
    if (!existsSync(map)) return [];
    const { sources } = JSON.parse(gunzipSync(readFileSync(map)).toString()) as { sources: string[] };
    return sources.map((source) => source.replace(/^(\.\.\/)+/, ''));
  });
}

/** The time of the processor, in seconds, that a program takes until its end. */
function cpuSeconds(...command: string[]): number {
  const timed = 'TIMEFORMAT="%U %S"; time "$@" >&2';
  const { stderr } = spawnSync('bash', ['-c', timed, 'bash', ...command], { encoding: 'utf8' });
  return (stderr.trim().split('\n').at(-1) ?? '').split(' ').reduce((sum, part) => sum + Number(part), 0);
}
