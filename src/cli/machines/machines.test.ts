import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startServer } from '../../../test/support/http/wire.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../../../test/support/orchestrator.ts';
import { runMain } from '../../../test/support/processes/run-main.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-machines-'));
const key = join(folder, 'id.pub');
const OFFER = 'h100-sxm-1x';
const REGION = 'eu-frankfurt';

let berth: TestOrchestrator;
const servers: Awaited<ReturnType<typeof startServer>>[] = [];

beforeAll(async () => {
  berth = await startTestOrchestrator();
  vi.stubEnv('BERTH_CONTEXTS', join(folder, 'contexts.yaml'));
  const api = await startServer(berth);
  const admin = await startServer({ listener: berth.admin.listener });
  servers.push(api, admin);
  writeFileSync(join(folder, 'account.key'), berth.key);
  writeFileSync(join(folder, 'operator.key'), await berth.addOperator('ann'));
  writeFileSync(key, `${newPublicKey('me')}\n`);
  const tenant = ['--account-key-file', join(folder, 'account.key')];
  await run('context', 'add', 'tenant', `http://127.0.0.1:${api.port}/v1`, ...tenant);
  const operator = ['--key-file', join(folder, 'operator.key')];
  await run('context', 'add', 'operator', `http://127.0.0.1:${admin.port}`, ...operator);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  for (const server of servers) await server[Symbol.asyncDispose]();
  await berth[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runMain(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function refusal(...args: string[]): Promise<string> {
  const { code, stderr } = await runMain(args);
  expect(code).toBe(1);
  return stderr;
}

const as = (context: string, verb: string, ...args: string[]): string[] => [
  ...['instances', verb, '--context', context],
  ...args,
];
const createArgs = (name: string, ...more: string[]): [string, ...string[]] => [
  'create',
  ...['--offer', OFFER, '--region', REGION, '--key', key, '--name', name],
  ...more,
];

async function make(context: string, name: string, ...more: string[]): Promise<string> {
  const { code, stdout } = await runMain(as(context, ...createArgs(name, '--wait', '--json', ...more)));
  expect(code).toBe(0);
  const made = JSON.parse(stdout);
  expect(made).toMatchObject({ status: 'ONLINE', region: REGION });
  return made.id;
}

describe("with a tenant's key", () => {
  it('an instance is made, used and removed by its name or the beginning of its id [machine-tenant]', async () => {
    const made = await runMain(as('tenant', ...createArgs('web', '--wait')));
    expect(made.stderr).toMatch(
      /^web \(inst-\w+\) is being made\.\n\d s +PROVISIONING\n(.*\n)*\d s +ONLINE\n$/,
    );
    expect(made.stdout).toMatch(/^web \(inst-\w+\) is ONLINE\. Log in: berth instances ssh web\n$/);
    const [{ id }] = JSON.parse(await run(...as('tenant', 'ls', '--json')));
    expect(await run(...as('tenant', 'ls'))).toMatch(/^ID +NAME +STATUS +OFFER .*\ninst-\w+ +web +ONLINE /);
    expect(await run('instances', '--context', 'tenant', '--status', 'STOPPED')).toBe(
      'There is no such instance.\n',
    );
    expect(await run(...as('tenant', 'show', id.slice(0, 12)))).toMatch(/status +ONLINE/);
    expect(await run(...as('tenant', 'stop', 'web', '--yes'))).toBe(
      'Ordered: web stops; its disk is kept.\n',
    );
    await berth.waitFor(id, 'STOPPED');
    expect(await refusal(...as('tenant', 'rm', 'inst', '--yes'))).toMatch('There is no instance inst:');
    expect(await run(...as('tenant', 'start', 'web', '--yes'))).toMatch('Ordered: web starts');
    await berth.waitFor(id, 'ONLINE');
    expect(await run(...as('tenant', 'restart', 'web', '--yes'))).toMatch('Ordered: web restarts');
    const plan = await runMain(as('tenant', 'rm', 'web'));
    expect(plan.stdout).toMatch(/^web \(inst-\w+\) is ONLINE\. .* all data on it is lost\.\n$/);
    expect(plan.stderr).toMatch('there is no terminal to ask on. Give --yes');
    expect(await run(...as('tenant', 'rm', 'web', '--yes'))).toMatch('is being removed');
    await berth.waitFor(id, 'GONE');
  });

  it('the server is asked for nothing that it would ignore, and never gets a private key', async () => {
    const file = join(folder, 'user-data.yaml');
    const withCloudInit = () => refusal(...as('tenant', ...createArgs('x', '--cloud-init', file)));
    writeFileSync(file, '#cloud-config\nusers: [me]\n');
    expect(await withCloudInit()).toMatch(/users.*It may have runcmd, packages, /);
    writeFileSync(file, 'runcmd: [7]\n');
    expect(await withCloudInit()).toMatch(/user-data\.yaml runcmd\.0: /);
    writeFileSync(file, 'runcmd: [\n');
    expect(await withCloudInit()).toMatch(/is not YAML/);
    const secret = join(folder, 'id');
    writeFileSync(secret, '-----BEGIN OPENSSH PRIVATE KEY-----\n');
    expect(await refusal(...as('tenant', ...createArgs('x'), '--key', secret))).toMatch(
      /id: this is a private key: send the public one/,
    );
    expect(await refusal(...as('tenant', ...createArgs('x', '--account', 'default')))).toMatch(
      '--account needs the key of an operator',
    );
  });

  it("the server's refusals are printed, and what to do about a key that it does not know", async () => {
    const unknown = as('tenant', ...createArgs('x')).map((word) => (word === OFFER ? 'none' : word));
    expect(await refusal(...unknown)).toMatch(/^berth: --offer: expected the id of an offer/);
    expect(await refusal(...as('tenant', 'stop', 'nobody', '--yes'))).toMatch(
      'There is no instance nobody: see `berth instances ls`',
    );
    expect(await refusal('alarms', 'ls', '--context', 'tenant')).toMatch(
      'The context tenant has the key of an account, and this command needs the key of an operator: give --context operator',
    );
    const bad = join(folder, 'bad.key');
    writeFileSync(bad, 'brt_none');
    await run('context', 'add', 'bad', `http://127.0.0.1:${servers[0]?.port}/v1`, '--account-key-file', bad);
    expect(await refusal(...as('bad', 'ls'))).toMatch(
      /does not accept the key of the context bad \(.*bad\.key\)/,
    );
    await run('context', 'rm', 'bad');
  });
});

describe("with an operator's key", () => {
  it('an instance is made for an account, with its row in the audit log [machine-operator]', async () => {
    expect(await refusal(...as('operator', ...createArgs('ops')))).toMatch('Give --account');
    const unknown = as('operator', ...createArgs('ops', '--account', 'default'));
    expect(await refusal(...unknown.map((word) => (word === OFFER ? 'none' : word)))).toMatch(
      /^berth: --offer: expected the id of an offer/,
    );
    expect(await refusal(...as('operator', ...createArgs('ops', '--account', 'none')))).toMatch(
      'There is no account none',
    );
    const id = await make('operator', 'ops', '--account', 'default');
    expect(await run(...as('operator', 'stop', 'ops', '--yes'))).toMatch(
      /of account default.*\nOrdered: its machine is shut down, and its disk is kept\.\n$/,
    );
    await berth.waitFor(id, 'STOPPED');
    expect(await refusal(...as('operator', 'restart', id, '--yes'))).toMatch(
      'is STOPPED: only an instance that is ONLINE can restart',
    );
    expect(await run(...as('operator', 'start', id, '--yes'))).toMatch('Ordered: its machine starts');
    await berth.waitFor(id, 'ONLINE');
    expect(await run(...as('operator', 'restart', id, '--dry-run'))).toMatch(/Plan: its machine is reset/);
    expect(await run(...as('operator', 'rm', id, '--yes'))).toMatch('Ordered');
    await berth.waitFor(id, 'GONE');
    const log = JSON.parse(await run('audit', 'ls', '--subject', id, '--context', 'operator', '--json'));
    expect(log.map((row: Record<string, string>) => [row['action'], row['actor'], row['outcome']])).toEqual([
      ['instance.destroy', 'ann', 'done'],
      ['instance.start', 'ann', 'done'],
      ['instance.restart', 'ann', 'refused'],
      ['instance.stop', 'ann', 'done'],
      ['instance.create', 'ann', 'done'],
    ]);
    expect(log.at(-1).detail).toMatchObject({ account: berth.account.id, offer: OFFER, name: 'ops' });
  });

  it('without a server nothing is made', async () => {
    const local = ['--context', 'local', '--database', `sqlite:${berth.databasePath}`];
    expect(await refusal('instances', ...createArgs('x', '--account', 'default'), ...local)).toMatch(
      'This needs a running server: use its context',
    );
  });
});

describe('berth instances ssh', () => {
  const bin = join(folder, 'bin');
  let box: Promise<string> | undefined;
  afterEach(() => vi.stubEnv('PATH', process.env['PATH']?.replace(`${bin}:`, '')));

  it.each(['tenant', 'operator'])(
    'runs ssh with user, host, port and a known host, and ends as it ends (%s) [machine-ssh]',
    async (context) => {
      box ??= make('operator', 'box', '--account', 'default');
      const id = await box;
      const { body } = await berth.request('GET', `/instances/${id}`);
      const said = join(folder, `${context}.args`);
      fakeSsh(bin, said);
      vi.stubEnv('PATH', `${bin}:${process.env['PATH']}`);
      const { code, stderr } = await runMain(as(context, 'ssh', 'box', '--', 'ls', '-l'));
      expect({ code, stderr }).toEqual({ code: 7, stderr: '' });
      expect(readFileSync(said, 'utf8').trimEnd().split('\n')).toEqual([
        ...['-o', `UserKnownHostsFile="${join(folder, 'known_hosts')}"`, '-o', `HostKeyAlias=${id}`],
        ...['-o', 'StrictHostKeyChecking=accept-new', '-l', String(body['ssh_username'])],
        ...['-p', String(body['ssh_port']), '--', String(body['public_ip']), 'ls', '-l'],
      ]);
    },
  );

  it('prints a stored console, and says what is missing without one or without ssh [machine-console]', async () => {
    expect(await refusal(...as('tenant', 'console', 'box'))).toMatch(
      /No console of inst-\w+ is stored, and it is ONLINE/,
    );
    await berth.store.transact(async (tx) =>
      tx.history.step(
        {
          ...{ instanceId: (await box) ?? '', at: Date.now(), cause: 'verify', attempt: 1, next: null },
          ...{ detail: 'it did not boot', calls: [], console: 'kernel panic', tookMs: 1 },
        },
        'row',
      ),
    );
    expect(await run(...as('operator', 'console', 'box'))).toBe('kernel panic\n');
    vi.stubEnv('PATH', join(folder, 'nowhere'));
    expect(await refusal(...as('tenant', 'ssh', 'box'))).toMatch('There is no `ssh` in PATH: install');
  });
});

/** A program that writes its arguments to a file, one a line. */
function fakeSsh(bin: string, said: string): void {
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nprintf '%s\\n' "$@" > '${said}'\nexit 7\n`);
  chmodSync(join(bin, 'ssh'), 0o755);
}
