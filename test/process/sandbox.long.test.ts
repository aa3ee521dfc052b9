import { spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { type Container, startSandboxContainer } from '../../src/compose/sandbox-testcontainers.ts';
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
  });
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

const hasCurl = spawnSync('curl', ['--version']).error === undefined;

it.skipIf(!hasCurl)('examples/sandbox/curl/run.sh lives through the life of a machine', () => {
  const root = new URL('../..', import.meta.url).pathname;
  const env = { ...process.env, BERTH: `${process.execPath} ${root}src/main.ts` };
  const { status, stdout, stderr } = spawnSync(`${root}examples/sandbox/curl/run.sh`, {
    env,
    encoding: 'utf8',
    timeout: 120_000,
  });
  expect([status, stdout, stderr]).toEqual([0, 'PROVISIONING\nONLINE\n404\nONLINE\n404\n', '']);
});
