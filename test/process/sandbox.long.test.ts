import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { type Container, startSandboxContainer } from '../../src/compose/sandbox/testcontainers.ts';
import { BerthProcess } from '../support/processes/process.ts';

/** `berth` in a process of its own, where testcontainers would run the image: its ports are mapped to themselves. */
class ProcessContainer implements Container {
  readonly exposed: number[] = [];
  command: string[] = [];
  process: BerthProcess | undefined;

  withExposedPorts(port: number): this {
    this.exposed.push(port);
    return this;
  }

  withCommand(command: string[]): this {
    const port = command.indexOf('--port') + 1;
    this.command = command.with(port, '0');
    return this;
  }

  async start() {
    const process = new BerthProcess(this.command);
    this.process = process;
    const logs = new PassThrough();
    const line = process.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
    line.then(
      (ready) => logs.end(`a warning\n${ready}\n`),
      () => logs.end(process.stderr),
    );
    const port = Number(new URL(JSON.parse(await line).origin).port);
    return {
      getHost: () => '127.0.0.1',
      getMappedPort: () => port,
      logs: async () => logs,
      stop: () => process.end(),
    };
  }
}

it('serves providers and the marketplace at one port, in a process that testcontainers could run, and ends cleanly', async () => {
  const container = new ProcessContainer();
  await using sandbox = await startSandboxContainer(container, {
    providers: ['b', 'd'],
    marketplace: true,
    seed: 7,
    hosts: ['sandbox.test'],
  });
  expect(container.command.slice(-2)).toEqual(['--hosts', 'sandbox.test']);
  await using process = container.process as BerthProcess;
  expect(container.exposed).toEqual([8099]);
  expect(Object.keys(sandbox.providers)).toEqual(['provider-b', 'provider-d']);
  for (const { baseUrl, apiKey } of Object.values(sandbox.providers)) {
    const headers = { authorization: `Bearer ${apiKey}` };
    expect((await fetch(`${baseUrl}/availability`, { headers })).status).toBe(200);
  }
  const { baseUrl, apiKey } = sandbox.marketplace ?? { baseUrl: '', apiKey: '' };
  const response = await fetch(`${baseUrl}/balance`, { headers: { authorization: `Bearer ${apiKey}` } });
  expect(await response.json()).toMatchObject({ teams: [{ balance: 10_000 }] });
  const { control } = sandbox;
  const clock = await fetch(`${control.baseUrl}/clock`, {
    headers: { authorization: `Bearer ${control.apiKey}` },
  });
  expect(clock.status).toBe(200);
  expect(await process.end()).toMatchObject({ code: 0, stderr: '' });
});

it('stops when standard input ends, with --stop-with-stdin', async () => {
  await using process = new BerthProcess(['sandbox', '--port', '0', '--json', '--stop-with-stdin']);
  const { code, stdout, stderr } = await process.ended;
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toHaveProperty('providers');
});

interface ReadyLine {
  origin: string;
  control: { base_url: string; api_key: string };
  providers: Record<string, { base_url: string; api_key: string }>;
  marketplace: { base_url: string; api_key: string };
}

/** A client of a sandbox in another process. Rejects where the connection breaks. */
async function ask<Body>(
  at: { base_url: string; api_key: string },
  path: string,
  { method = 'GET', body }: { method?: string; body?: object } = {},
): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${at.base_url}${path}`, {
    method,
    headers: { authorization: `Bearer ${at.api_key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

const KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const instanceOrder = { configuration_id: 'b-cpu-4x16-spot', region: 'us-ashburn', ssh_keys: [KEY] };
const deploymentOrder = {
  provider: 'provider-b',
  offerId: 'b-cpu-4x16-spot',
  gpuCount: 0,
  region: 'us-ashburn',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'SPOT',
  ssh_public_key: KEY,
};

it.each([20, 60])(
  'has all that it answered before kill -9, under load, after %i answers [sandbox-killed]',
  async (answers) => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-sandbox-killed-'));
    const args = ['sandbox', '--port', '0', '--json', '--providers', 'b', '--marketplace'];
    const start = async () => {
      const process = new BerthProcess([...args, '--state', join(folder, 'state')]);
      const line = await process.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
      return { process, ready: JSON.parse(line) as ReadyLine };
    };
    const { process: first, ready } = await start();
    await using _first = first;
    const provider = (one: ReadyLine) => one.providers['provider-b'] ?? { base_url: '', api_key: '' };
    const instances = new Map<string, string>();
    const deployments = new Map<string, { status: string; startedAt: string | null }>();
    const accounts: string[] = [];
    let balance = 0;
    let advancedMs = 0;
    let count = 0;
    const killWhenDue = (): void => {
      if (++count === answers) first.child.kill('SIGKILL');
    };
    const order = async (): Promise<void> => {
      const made = await ask<{ id: string; status: string }>(provider(ready), '/instances', {
        method: 'POST',
        body: instanceOrder,
      });
      if (made.status === 201) instances.set(made.body.id, made.body.status);
      killWhenDue();
      for (const id of instances.keys()) {
        const { body } = await ask<{ status: string }>(provider(ready), `/instances/${id}`);
        instances.set(id, body.status);
        killWhenDue();
      }
    };
    const deploy = async (): Promise<void> => {
      const { marketplace } = ready;
      const made = await ask<{ id: string }>(marketplace, '/deployments', {
        method: 'POST',
        body: deploymentOrder,
      });
      if (made.status === 201) deployments.set(made.body.id, { status: 'deploying', startedAt: null });
      killWhenDue();
      for (const id of deployments.keys()) {
        deployments.set(
          id,
          (await ask<{ status: string; startedAt: string | null }>(marketplace, `/deployments/${id}`)).body,
        );
        killWhenDue();
      }
      balance =
        (await ask<{ teams: { balance: number }[] }>(marketplace, '/balance')).body.teams[0]?.balance ?? 0;
      killWhenDue();
    };
    const control = async (): Promise<void> => {
      const { body } = await ask<{ providers: Record<string, { api_key: string }> }>(
        ready.control,
        '/accounts',
        {
          method: 'POST',
          body: {},
        },
      );
      accounts.push(body.providers['provider-b']?.api_key ?? '');
      killWhenDue();
      const clock = await ask<{ now: string }>(ready.control, '/clock/advance', {
        method: 'POST',
        body: { by: '10s' },
      });
      advancedMs = Date.parse(clock.body.now);
      killWhenDue();
    };
    const repeat = async (work: () => Promise<void>): Promise<void> => {
      for (;;) await work();
    };
    await Promise.allSettled([order, deploy, control].map(repeat));
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });

    const second = await start();
    await using _second = second.process;
    const { marketplace } = second.ready;
    expect(instances.size).toBeGreaterThan(0);
    expect(deployments.size).toBeGreaterThan(0);
    const now = await ask<{ now: string }>(second.ready.control, '/clock');
    expect(Date.parse(now.body.now)).toBeGreaterThanOrEqual(advancedMs);
    for (const [id, status] of instances) {
      const shown = await ask<{ status: string }>(provider(second.ready), `/instances/${id}`);
      expect(shown, `instance ${id}, which was ${status}`).toMatchObject({
        status: 200,
        body: { status: status === 'ONLINE' ? 'ONLINE' : expect.stringMatching(/^(PROVISIONING|ONLINE)$/) },
      });
    }
    for (const [id, { status, startedAt }] of deployments) {
      const shown = await ask<{ status: string; startedAt: string | null }>(
        marketplace,
        `/deployments/${id}`,
      );
      expect(shown.status, `deployment ${id}`).toBe(200);
      expect(shown.body).toMatchObject(
        startedAt === null
          ? { status: expect.stringMatching(/^(deploying|running)$/) }
          : { status, startedAt },
      );
    }
    for (const key of accounts) {
      const { base_url } = provider(second.ready);
      expect((await ask({ base_url, api_key: key }, '/instances')).status).toBe(200);
    }
    const kept = await ask<{ teams: { balance: number }[] }>(marketplace, '/balance');
    const spent = balance - (kept.body.teams[0]?.balance ?? 0);
    expect(balance).toBeGreaterThan(0);
    expect(spent).toBeGreaterThanOrEqual(0);
    expect(spent).toBeLessThan(1);
    expect(await second.process.end()).toMatchObject({ code: 0, stderr: '' });
    rmSync(folder, { recursive: true });
  },
);
