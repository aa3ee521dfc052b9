import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import { fileOf } from '../support/processes/built-programs.ts';
import {
  type KillingProxy,
  type Moment,
  type PassedRequest,
  startKillingProxy,
} from '../support/processes/killing-proxy.ts';
import {
  BerthProcess,
  type Ended,
  runBerth,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';

const entry = fileOf('conformance-alone');
const root = temporaryFolder();
const server = await startServing(['--config', writeFastConfig(join(root.path, 'server'))]);
const client = createClient(server.baseUrl, server.apiKey);
const env = { BERTH_API_KEY: server.apiKey, BERTH_SECOND_API_KEY: server.apiKey };
const NOT_REACHED = 'this run did not come to it';
const patience = ['--poll-interval-ms', '50', '--ready-timeout-s', '20'];
let count = 0;

afterAll(async () => {
  await server.end();
  root[Symbol.dispose]();
});

/** A run of everything, through a proxy, with a folder for its ledger. */
class Run implements AsyncDisposable {
  readonly proxy: KillingProxy;
  readonly process: BerthProcess;
  /** A few steps depend on how quick a machine is. */
  wasReached = false;
  readonly #stateDir: string;

  private constructor(proxy: KillingProxy, plan?: { moment: Moment; signal: NodeJS.Signals }) {
    this.proxy = proxy;
    this.#stateDir = join(root.path, `state-${++count}`);
    const args = [
      proxy.baseUrl,
      '--level',
      'full',
      '--max-cost',
      '1000',
      '--observe-s',
      '0',
      '--yes',
      ...patience,
    ];
    this.process = new BerthProcess([...args, '--state-dir', this.#stateDir], { entry, env });
    if (plan === undefined) return;
    proxy.arm(plan.moment, () => {
      this.wasReached = true;
      this.process.child.kill(plan.signal);
      return plan.signal === 'SIGKILL' ? 'cut' : 'pass';
    });
  }

  static async start(plan?: { moment: Moment; signal: NodeJS.Signals }): Promise<Run> {
    return new Run(await startKillingProxy(server.baseUrl), plan);
  }

  sweep(...more: string[]): Promise<Ended> {
    const args = [this.proxy.baseUrl, '--state-dir', this.#stateDir, ...patience, ...more];
    return runBerth(['sweep', ...args], { entry, env });
  }

  /** What exists on the server that this run made. */
  async left(): Promise<string[]> {
    const [ledger = ''] = readdirSync(this.#stateDir).filter((name) => name.endsWith('.ndjson'));
    const prefix = `berth-conf-${ledger.replace('.ndjson', '')}-`;
    const { body } = await client.request('GET', '/instances');
    const { instances } = body as { instances: { name: string; status: string }[] };
    const live = instances.filter(({ name, status }) => name.startsWith(prefix) && status !== 'DESTROYED');
    const volumes: string[] = [];
    for (const id of this.proxy.volumes)
      if ((await client.request('GET', `/volumes/${id}`)).status !== 404) volumes.push(id);
    return [...live.map(({ name, status }) => `${name} ${status}`), ...volumes];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process.end('SIGKILL');
    await this.proxy[Symbol.asyncDispose]();
  }
}

/** What a run sends, one request for each step. */
async function recordSteps(): Promise<PassedRequest[]> {
  await using run = await Run.start();
  const { code, signal, stdout, stderr } = await run.process.ended;
  if (code === null || code > 2)
    throw new Error(`the run that is to be killed ends with ${code ?? signal}:\n${stdout}${stderr}`);
  const byStep = new Map(run.proxy.requests.map((request) => [`${request.method} ${request.step}`, request]));
  return [...byStep.values()];
}

const steps = (await recordSteps()).filter(({ step }) => step.includes('/'));
const changing = steps.filter(({ method }) => method !== 'GET');
/** What is refused is much, and alike. */
const isRefusal = ({ step }: PassedRequest): boolean =>
  /^(refusals|unauthenticated|unknown|volumes\/invalid|token)\/|-credential$/.test(step);
const sample = <T>(items: readonly T[], size: number): T[] =>
  items.filter((_, index) => index % Math.ceil(items.length / size) === 0);
const chosen = [
  ...changing.filter((request) => !isRefusal(request)),
  ...sample(changing.filter(isRefusal), 5),
  ...sample(
    steps.filter(({ method }) => method === 'GET'),
    8,
  ),
];

const creates = ({ path, method }: PassedRequest, what: string): boolean =>
  method === 'POST' && path.endsWith(`/${what}`);

it('the moments are those of a whole run', () => {
  expect(changing.some((request) => creates(request, 'instances'))).toBe(true);
  expect(changing.some((request) => creates(request, 'volumes'))).toBe(true);
  expect(changing.filter(({ method }) => method === 'DELETE').length).toBeGreaterThan(3);
  expect(chosen.length).toBeGreaterThan(25);
});

describe.concurrent('a run that is killed, and then swept, leaves nothing', () => {
  const moments = chosen.flatMap((request) =>
    (request.method === 'GET' ? (['after'] as const) : (['before', 'after'] as const)).map((when) => ({
      ...request,
      when,
    })),
  );
  it.for(moments)('$when $method $step', async (moment, { skip }) => {
    await using run = await Run.start({ moment, signal: 'SIGKILL' });
    const { signal } = await run.process.ended;
    if (!run.wasReached) skip(NOT_REACHED);
    expect(signal).toBe('SIGKILL');
    const swept = await run.sweep();
    if (creates(moment, 'volumes') && swept.code === 5) return await settleVolume(run, swept);
    expect(swept).toMatchObject({ code: 0, stderr: expect.not.stringContaining('fault') });
    expect(await run.left()).toEqual([]);
    expect((await run.sweep()).stdout).toContain('Nothing to sweep');
  });
});

/** The contract has no list of volumes: one whose create was not answered is named, for a person to look for. */
async function settleVolume(run: Run, { stdout }: Ended): Promise<void> {
  const names = [...stdout.matchAll(/volume (berth-conf-\S+), if it exists/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(0);
  for (const id of await run.left()) await client.request('DELETE', `/volumes/${id}`);
  const swept = await run.sweep(...names.flatMap((name) => ['--absent', name]));
  expect(swept).toMatchObject({ code: 0 });
}

describe.concurrent('a run that is interrupted cleans up by itself', () => {
  const moments = chosen.map((request) => ({ ...request, when: 'before' as const }));
  it.for(moments)('$when $method $step', async (moment, { skip }) => {
    await using run = await Run.start({ moment, signal: 'SIGINT' });
    const { code, signal, stdout, stderr } = await run.process.ended;
    if (!run.wasReached) skip(NOT_REACHED);
    expect({ signal, stderr }).toMatchObject({
      signal: null,
      stderr: expect.stringContaining('Interrupted'),
    });
    expect(stdout).toMatch(/^(INCOMPLETE|NON-CONFORMANT)/);
    if (code === 5 && creates(moment, 'volumes')) return await settleVolume(run, await run.sweep());
    // What machines that boot in milliseconds make of the run until then is not the matter here.
    expect([1, 2]).toContain(code);
    expect(await run.left()).toEqual([]);
  });
});
