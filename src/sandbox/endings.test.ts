import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';
import type { Sandbox } from './sandbox.ts';

const START = Date.UTC(2026, 0, 1);

/** Sends a request that waits for time while time does not pass. */
async function waitingRequest(sandbox: Sandbox): Promise<Promise<Response>[]> {
  await sandbox.faults.arm('latency', { ms: 60_000 });
  sandbox.clock.freeze();
  const { baseUrl, apiKey } = sandbox.provider('a');
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = sandbox.fetch(`${baseUrl}/availability`, { headers });
  answer.catch(() => undefined);
  // By then the request has detected that time does not pass.
  await sandbox.clock.advance(0);
  await sandbox.clock.advance(0);
  return [answer];
}

const broken = { name: 'TypeError', cause: { code: 'ECONNRESET' } };

it('a request that waits for an answer breaks when the sandbox is reset, and nothing of it comes later', async () => {
  await using sandbox = await createSandbox();
  const [answer] = await waitingRequest(sandbox);
  await sandbox.control.reset();
  await expect(answer).rejects.toMatchObject(broken);
  expect(sandbox.clock.timers).toBe(0);
  expect(await sandbox.control.journal.entries()).toEqual([]);
});

it('a request that waits for an answer breaks when the sandbox is closed, and a later one says that it is', async () => {
  const sandbox = await createSandbox();
  const [answer] = await waitingRequest(sandbox);
  await sandbox.close();
  await expect(answer).rejects.toMatchObject(broken);
  const closed = 'The sandbox is closed.';
  await expect(sandbox.fetch('/providers/provider-a/v1/availability')).rejects.toThrow(closed);
  await expect(sandbox.control.reset()).rejects.toThrow(closed);
  await expect(sandbox.account()).rejects.toThrow(closed);
});

it.each<[string, (sandbox: Sandbox) => Promise<unknown>]>([
  ['reset', ({ control }) => control.reset()],
  ['closed', (sandbox) => sandbox.close()],
])('a stalled response body breaks off when the sandbox is %s', async (_what, end) => {
  await using sandbox = await createSandbox();
  await sandbox.faults.arm('half-body-silence');
  const { baseUrl, apiKey } = sandbox.provider('a');
  const headers = { authorization: `Bearer ${apiKey}` };
  const body = (await sandbox.fetch(`${baseUrl}/availability`, { headers })).text();
  body.catch(() => undefined);
  await sandbox.clock.advance(0);
  await end(sandbox);
  await expect(body).rejects.toMatchObject(broken);
});

it('a reset during an advance comes after it', async () => {
  await using sandbox = await createSandbox();
  await sandbox.control.play({
    name: 'one',
    steps: [{ do: 'create_instance', as: 'one', until: 'PROVISIONING' }],
  });
  const ends: string[] = [];
  const noting = (name: string, work: Promise<unknown>) => work.then(() => ends.push(name));
  await Promise.all([
    noting('advance', sandbox.clock.advance(3_600_000)),
    noting('reset', sandbox.control.reset()),
    noting('another', sandbox.control.reset()),
  ]);
  expect(ends).toEqual(['advance', 'reset', 'another']);
  expect(sandbox.clock.now()).toBe(START);
});

it('two resets and a restore at once leave one server of each', async () => {
  await using sandbox = await createSandbox({ marketplace: true });
  const { reset, snapshots } = sandbox.control;
  const make = () => sandbox.control.play({ name: 'one', steps: [{ do: 'create_instance', as: 'one' }] });
  await make();
  await snapshots.take('one');
  const { timers } = sandbox.clock;
  await Promise.all([reset(), snapshots.restore('one'), reset(), snapshots.restore('one')]);
  expect(sandbox.clock.timers).toBe(timers);
  await reset();
  await make();
});

it('a deadline that a client has set ends when the sandbox is reset', async () => {
  await using sandbox = await createSandbox();
  const signal = sandbox.clock.timeout(10_000);
  await sandbox.control.reset();
  expect([signal.aborted, sandbox.clock.timers]).toEqual([true, 0]);
});

it('a request held by a frozen clock continues when the clock does', async () => {
  await using sandbox = await createSandbox();
  const [answer] = await waitingRequest(sandbox);
  sandbox.clock.resume();
  expect((await answer)?.status).toBe(200);
  expect(sandbox.clock.now()).toBe(START + 60_000);
});

it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 1e18, '5 s' as unknown as number])(
  'refuses to advance time by %s',
  async (ms) => {
    await using sandbox = await createSandbox();
    await expect(sandbox.clock.advance(ms)).rejects.toThrow(RangeError);
    expect(sandbox.clock.now()).toBe(START);
  },
);

it('refuses a longer advance through the control API', async () => {
  await using sandbox = await createSandbox();
  const words = 'by: expected at most 100 years';
  await expect(sandbox.control.clock.advance(1e18)).rejects.toThrow(words);
  await expect(sandbox.control.clock.advance('99999d')).rejects.toThrow(words);
});

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

it('nothing holds the servers of before a reset', async () => {
  await using sandbox = await createSandbox();
  const platforms: WeakRef<object>[] = [];
  for (let round = 0; round < 3; round++) {
    const { platform, baseUrl, apiKey } = sandbox.provider('a');
    platforms.push(new WeakRef(platform));
    await sandbox.fetch(`${baseUrl}/availability`, { headers: { authorization: `Bearer ${apiKey}` } });
    await sandbox.control.reset();
  }
  await sandbox.clock.settle();
  collectGarbage();
  // The last reset's promise may still be on a stack.
  expect(platforms.slice(0, -1).map((platform) => platform.deref())).toEqual([undefined, undefined]);
});
