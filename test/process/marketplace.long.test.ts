import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { assertKeepsMarketplaceContract } from '../support/http/contract.ts';
import { until } from '../support/http/http-client.ts';
import { sourceOfBerth } from '../support/processes/built-programs.ts';
import {
  BerthProcess,
  runBerth,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { writeTimes } from '../support/processes/quick-times.ts';

const root = temporaryFolder();
afterAll(() => root[Symbol.dispose]());

/** Polls as often as it may, is asked as often as a test likes, and lets a deployment end at once. */
function writeConfig(providerUrl: string): string {
  const file = join(root.path, 'marketplace.yaml');
  writeFileSync(
    file,
    `database: sqlite:marketplace.db
log_level: warn
providers:
- { id: provider-d, base_url: "${providerUrl}", api_key_env: KEY_D, allow_private: true }
billing: { minimum_runtime_minutes: 0 }
rate_limits: false
`,
  );
  writeTimes(file, { polling: { intervalMs: [1_000, 1_000] } });
  return file;
}

async function startMarketplace(config: string, providerKey: string) {
  const args = ['marketplace', '--port', '0', '--json', '--config', config];
  const berth = new BerthProcess(args, { env: { KEY_D: providerKey } });
  const line = await berth.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  return Object.assign(berth, { baseUrl: String(JSON.parse(line).base_url) });
}

function clientOf(baseUrl: string, key: string) {
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const { status } = response;
    const contentType = response.headers.get('content-type');
    const text = await response.text();
    assertKeepsMarketplaceContract({
      method,
      path: path.replace(/\?.*/, ''),
      status,
      contentType,
      body: text,
    });
    return { status, body: JSON.parse(text) as Record<string, unknown> };
  };
}

it('sells the machines of a real orchestrator, through a restart, and the books are right', async () => {
  await using orchestrator = await startServing(['--config', writeFastConfig(join(root.path, 'provider'))]);
  const config = writeConfig(orchestrator.baseUrl);
  const operate = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runBerth(['marketplace', ...args, '--config', config], {
      env: { KEY_D: orchestrator.apiKey },
    });
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return stdout;
  };

  await using first = await startMarketplace(config, orchestrator.apiKey);
  await operate('users', 'add', 'ann@example.com', '--allow-keys');
  const { api_key: key } = JSON.parse(await operate('keys', 'create', 'ann@example.com', '--json'));
  const ask = clientOf(first.baseUrl, key);
  const { body: teams } = await ask('GET', '/api/teams');
  const teamId = String((teams as unknown as { id: string }[])[0]?.id);
  expect((await ask('POST', '/api/deployments', deploying())).body).toMatchObject({
    details: { reason: 'insufficient_balance' },
  });
  await operate('credit', 'add', teamId, '50', '--reference', 'inv-1');
  const created = await ask('POST', '/api/deployments', deploying());
  expect(created).toMatchObject({ status: 201, body: { status: 'deploying' } });
  const path = `/api/deployments/${created.body['id']}`;
  expect(await first.end()).toMatchObject({ code: 0, signal: null });

  await using second = await startMarketplace(config, orchestrator.apiKey);
  const again = clientOf(second.baseUrl, key);
  await waitFor(again, path, 'running');
  expect((await again('POST', `${path}/restart`)).status).toBe(200);
  await until(
    async () => (await again('GET', `${path}/reboot-status`)).body['restarting'] === false,
    () => 'the restart does not end',
  );
  const ended = await again('DELETE', path);
  expect(ended).toMatchObject({ status: 200, body: { deployment: { status: 'terminated' } } });
  await until(
    async () => (await instancesOf(orchestrator)).length === 0,
    () => 'the machine is still there',
  );
  expect(Number((await again('GET', path)).body['totalCost'])).toBeGreaterThan(0);
  expect(await operate('verify-ledger')).toMatch('The ledger is consistent');
  expect(await operate('explain-bill', String(created.body['id']))).toMatch(/running/);
  expect(await operate('providers', 'check')).toMatch(/^provider-d: answers; \d+ offers/);
  expect(await second.end()).toMatchObject({ code: 0, signal: null });
});

it('prints commands that work where it was started', async () => {
  const config = writeConfig('http://127.0.0.1:9/v1');
  const args = ['marketplace', '--port', '0', '--admin-port', '0', '--config', config];
  await using berth = new BerthProcess(args, { env: { KEY_D: 'x' }, entry: sourceOfBerth });
  await berth.waitForOutput((stdout) => (stdout.includes('keys create') ? true : undefined));
  const commands = berth.stdout.split('\n').flatMap((line) => /^ +(.* create .*)$/.exec(line)?.[1] ?? []);
  expect(commands).toHaveLength(3);
  const printed: string[] = [];
  for (const command of commands) printed.push((await promisify(execFile)('sh', ['-c', command])).stdout);
  expect(printed).toEqual([
    expect.stringMatching(/^berthop_/),
    expect.stringContaining('you@example.com'),
    expect.stringMatching(/^berth_/),
  ]);
});

function deploying(): object {
  return {
    provider: 'provider-d',
    offerId: 'cpu-4x16',
    gpuType: 'CPU',
    gpuCount: 0,
    region: 'eu-frankfurt',
    operatingSystem: 'ubuntu-24.04',
    instanceType: 'DEDICATED',
    ssh_public_key: newPublicKey(),
  };
}

async function waitFor(ask: ReturnType<typeof clientOf>, path: string, status: string): Promise<void> {
  let last: unknown;
  await until(
    async () => {
      last = (await ask('GET', path)).body;
      return (last as { status?: string }).status === status;
    },
    () => `${path} is not ${status}: ${JSON.stringify(last)}`,
  );
}

async function instancesOf({ baseUrl, apiKey }: { baseUrl: string; apiKey: string }): Promise<unknown[]> {
  const response = await fetch(`${baseUrl}/instances`, { headers: { Authorization: `Bearer ${apiKey}` } });
  return ((await response.json()) as { instances: unknown[] }).instances;
}
