import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import {
  BerthProcess,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { until } from '../support/time/until.ts';

const root = temporaryFolder();
let server: ServingProcess;
let count = 0;
beforeAll(async () => {
  server = await startServing(['--config', writeFastConfig(join(root.path, 'server'))]);
});
afterAll(async () => {
  await server.end();
  root[Symbol.dispose]();
});

async function live(): Promise<string[]> {
  const { body } = await createClient(server.baseUrl, server.apiKey).request('GET', '/instances');
  const { instances } = body as { instances: { name: string; status: string }[] };
  return instances.filter(({ status }) => status !== 'DESTROYED').map(({ name }) => name);
}

/** A run, up to where it has made a machine. */
async function startRun(): Promise<BerthProcess> {
  const run = new BerthProcess(
    [
      'conformance',
      server.baseUrl,
      '--poll-interval-ms',
      '200',
      '--state-dir',
      join(root.path, `state-${++count}`),
    ],
    { env: { BERTH_API_KEY: server.apiKey } },
  );
  await until('something is made', () => run.stderr.includes('made instance'), 40_000);
  return run;
}

it('a reader that goes away (EPIPE) ends neither the run nor its clean-up', async () => {
  await using run = await startRun();
  run.child.stdout?.destroy();
  run.child.stderr?.destroy();
  const { code, signal } = await run.ended;
  expect(signal).toBeNull();
  expect([0, 1, 2]).toContain(code);
  expect(await live()).toEqual([]);
});

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends the run, and what it made is destroyed',
  async (signal) => {
    await using run = await startRun();
    const ended = await run.end(signal);
    expect(ended).toMatchObject({ signal: null, stderr: expect.stringContaining('Interrupted') });
    expect([1, 2]).toContain(ended.code);
    expect(await live()).toEqual([]);
  },
  60_000,
);

it('a terminal that is hung up takes nothing with it', async () => {
  await using run = await startRun();
  run.child.stdout?.destroy();
  run.child.stderr?.destroy();
  expect((await run.end('SIGHUP')).signal).toBeNull();
  expect(await live()).toEqual([]);
});
