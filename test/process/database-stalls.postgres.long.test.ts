import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { pages as marketplacePages } from '../../src/marketplace/console/app.ts';
import { pages as orchestratorPages } from '../../src/orchestrator/console/app.ts';
import { type StallingPostgres, startStallingPostgres } from '../support/databases/stalled-postgres.ts';
import { documentedReads } from '../support/http/documented-reads.ts';
import { createClient } from '../support/http/http-client.ts';
import {
  BerthProcess,
  runBerth,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

const TOKEN = 'a-token-for-these-tests';
const env = { BERTH_SIMULATOR_TOKEN: TOKEN };
/** Within two seconds, and what a busy machine adds. */
const PROMPT_MS = 4_000;

let postgres: StallingPostgres;
let folder: ReturnType<typeof temporaryFolder>;
beforeEach(async () => {
  folder = temporaryFolder();
  postgres = await startStallingPostgres();
});
afterEach(async () => {
  await postgres[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Reads of one kind: what they are called, and what opens them. */
interface Reads {
  base: string;
  paths: readonly string[];
  headers: Record<string, string>;
  /** What memory answers. */
  remembered?: readonly string[];
}

/** Asks for everything again and again until all that needs the database is 503; no answer may take longer. */
async function expectPromptly(reads: readonly Reads[]): Promise<void> {
  await until('each read that needs the database is 503', async () => {
    const answers = reads.flatMap(({ base, paths, headers, remembered = [] }) =>
      paths.map(async (path) => {
        const begun = performance.now();
        const response = await fetch(`${base}${path}`, { headers, redirect: 'manual' });
        await response.text();
        const { status } = response;
        const tookMs = performance.now() - begun;
        expect([path, status, tookMs < PROMPT_MS || tookMs]).toEqual([path, status, true]);
        return status === 503 || remembered.includes(path);
      }),
    );
    return (await Promise.all(answers)).every((isRight) => isRight);
  });
}

/** The pages of a console, as an operator who has signed in reads them. */
async function consoleOf(
  adminUrl: string,
  key: string,
  pages: readonly (readonly [path: string, page: unknown])[],
): Promise<Reads> {
  const response = await fetch(new URL('/console/login', adminUrl), {
    method: 'POST',
    headers: { Origin: adminUrl },
    body: new URLSearchParams({ key, next: '/console' }),
    redirect: 'manual',
  });
  expect(response.status).toBe(303);
  const [cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  return {
    base: `${adminUrl}/console`,
    paths: pages.map(([path]) => path.replace(':id', 'none')),
    headers: { Cookie: cookie },
  };
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const isWell = async (baseUrl: string) => (await fetch(new URL('/readyz', baseUrl))).status === 200;

it('while PostgreSQL stands still each read is answered within 2 s, and a database that is lost is one alarm [database-stalls]', async () => {
  const database = await postgres.createDatabase();
  const platform = writeFastConfig(join(folder.path, 'platform'));
  const state = join(folder.path, 'platform.db');
  const flags = ['--json', '--port', '0', '--config', platform, '--state', state];
  await using simulator = new BerthProcess(['simulator', ...flags], { env });
  const line = await simulator.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const config = writeFastConfig(folder.path, { address: JSON.parse(line)['base_url'] });
  const where = ['--config', config, '--database', database];
  await using berth = await startServing([...where, '--admin-port', '0'], { env });
  const { admin_url: adminUrl } = JSON.parse(berth.stdout);
  const made = await runBerth(['operators', 'create', 'ann', '--json', ...where], { env });
  const { operator_key: key } = JSON.parse(made.stdout);
  const client = createClient(berth.baseUrl, berth.apiKey);
  const { body } = await client.request('POST', '/instances', { body: instanceRequest() });
  const path = `/instances/${body['id']}`;
  await client.waitFor(path, 'ONLINE');
  const reads: Reads[] = [
    {
      base: berth.baseUrl,
      paths: [...documentedReads('orchestrator.v1', `vol-${'0'.repeat(32)}`), path],
      headers: bearer(berth.apiKey),
      remembered: ['/configurations', '/availability', '/volumes/locations'],
    },
    {
      base: `${adminUrl}/operator/v1`,
      paths: documentedReads('operator.v1', 'none'),
      headers: bearer(key),
    },
    await consoleOf(adminUrl, key, orchestratorPages),
  ];

  await postgres.stall();
  await expectPromptly(reads);
  expect((await fetch(new URL('/readyz', berth.baseUrl))).status).toBe(503);
  postgres.resume();
  await until('it is ready again', () => isWell(berth.baseUrl));
  await client.waitFor(path, 'ONLINE');
  const errors = () => berth.stderr.split('\n').filter((text) => text.includes('"level":50'));
  const before = errors().length;
  await postgres.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'berth%'",
  );
  await until('it is ready again', () => isWell(berth.baseUrl));
  expect(before).toBeLessThan(2);
  expect(errors().length - before).toBeLessThan(2);
  expect(await berth.end('SIGTERM')).toMatchObject({ code: 0 });
});

it('while the PostgreSQL of a marketplace stands still each read is answered within 2 s, and no write as if it had not been done [marketplace-database-stalls]', async () => {
  const database = await postgres.createDatabase();
  const provider = writeFastConfig(join(folder.path, 'provider'));
  await using orchestrator = await startServing(['--config', provider]);
  const config = join(folder.path, 'marketplace.yaml');
  writeFileSync(
    config,
    `database: ${database}
log_level: warn
providers:
- { id: provider-d, base_url: "${orchestrator.baseUrl}", api_key_env: KEY_D, allow_private: true }
rate_limits: false
`,
  );
  const options = { env: { KEY_D: orchestrator.apiKey } };
  const operate = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runBerth(['marketplace', ...args, '--config', config], options);
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  const flags = ['--port', '0', '--admin-port', '0', '--json', '--config', config];
  await using berth = new BerthProcess(['marketplace', ...flags], options);
  const line = await berth.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { base_url: baseUrl, admin_url: adminUrl } = JSON.parse(line);
  await operate('users', 'add', 'ann@example.com', '--allow-keys');
  const { api_key: apiKey } = JSON.parse(await operate('keys', 'create', 'ann@example.com', '--json'));
  const { operator_key: key } = JSON.parse(await operate('operators', 'create', 'ann', '--json'));
  const ownReads = documentedReads('marketplace', 'none');
  const teams = () => fetch(`${baseUrl}/api/teams`, { headers: bearer(apiKey) });
  const [{ id: teamId }] = (await (await teams()).json()) as [{ id: string }];
  const reads: Reads[] = [
    { base: baseUrl, paths: ownReads, headers: bearer(apiKey) },
    {
      base: `${adminUrl}/operator/v1`,
      paths: documentedReads('marketplace-operator.v1', 'none'),
      headers: bearer(key),
    },
    await consoleOf(adminUrl, key, marketplacePages),
  ];

  await postgres.stall();
  await expectPromptly(reads);
  const begun = performance.now();
  const metrics = await (await fetch(new URL('/metrics', adminUrl))).text();
  expect(performance.now() - begun).toBeLessThan(PROMPT_MS);
  expect(metrics).toMatch(/^berth_marketplace_store_up 0$/m);
  const written = await fetch(`${baseUrl}/api/ssh-keys`, {
    method: 'POST',
    headers: { ...bearer(apiKey), 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'laptop', publicKey: 'ssh-ed25519 AAAA', teamId }),
  });
  expect([written.status, await written.text()]).toEqual([
    503,
    expect.stringContaining('does not know whether the request was carried out'),
  ]);
  postgres.resume();
  await until('it is ready again', () => isWell(baseUrl));
  expect((await teams()).status).toBe(200);
  expect(await berth.end('SIGTERM')).toMatchObject({ code: 0 });
});
