import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../../test/support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import type { PlatformDriver, Step } from '../../../orchestrator/model/platform-driver.ts';
import { createSimulator } from '../platform/simulator.ts';
import { doneValue, instantly, machineSpec } from '../simulator.fixture.ts';
import { connectSimulator } from './driver.ts';
import { ORDER_VALID_MS } from './protocol.ts';
import { CAPACITY, startRemotePair } from './remote.fixture.ts';

/** What each call of the driver answers, in a life of a machine and of a volume. */
async function life(of: PlatformDriver, clock: VirtualClock): Promise<object[]> {
  const driver = of as Required<PlatformDriver>;
  const { volumes } = driver;
  const volume = { ref: 'vol', datacenter: 'fra', sizeGb: 10, type: 'fast', note: 'a note' };
  const cloudInit = { runcmd: ['true'] };
  const spec = machineSpec({ sshKeys: ['ssh-ed25519 AAAA'], cloudInit, gpuType: undefined });
  const answers: object[] = [];
  async function through<T>(step: (cookie: string | null) => Promise<Step<T>>): Promise<void> {
    let cookie: string | null = null;
    for (let polls = 0; polls < 9; polls++) {
      const answer: Step<T> = await step(cookie);
      answers.push(answer, await driver.get('berth-1'), await volumes.get('vol'));
      if (answer.outcome !== 'pending') return;
      cookie = answer.cookie;
      await clock.advance(answer.pollAfterMs);
    }
  }
  const read = async () =>
    void answers.push(await driver.list(), await volumes.list(), await driver.inventory(['fra-r1-h100-1']));
  await through((cookie) => driver.create(machineSpec({ datacenter: 'nowhere' }), cookie));
  await through((cookie) => driver.create(spec, cookie));
  await through((cookie) => volumes.create(volume, cookie));
  await through((cookie) => volumes.attach('vol', 'berth-1', cookie));
  await read();
  await through((cookie) => driver.restart('berth-1', 'op-1', cookie));
  await through((cookie) => driver.stop('berth-1', cookie));
  await through((cookie) => volumes.detach('vol', 'berth-1', cookie));
  await through((cookie) => volumes.resize('vol', 20, cookie));
  await through((cookie) => driver.start('berth-1', cookie));
  await through((cookie) => driver.disown('berth-1', cookie));
  await through((cookie) => volumes.destroy('vol', cookie, anOrder));
  await through((cookie) =>
    driver.create(machineSpec({ ref: 'berth-2', avoidHosts: ['fra-r1-h100-1'] }), cookie),
  );
  await through((cookie) => driver.destroy('berth-2', cookie, anOrder));
  await read();
  return JSON.parse(JSON.stringify(answers), withoutChance);
}

/** Ports and host keys differ between any two simulators. */
const withoutChance = (key: string, value: unknown) =>
  ['sshPort', 'external_port', 'hostKeyFingerprint'].includes(key) ? typeof value : value;

it('answers each call as the simulator in this process does', async () => {
  await using pair = await startRemotePair();
  const clock = new VirtualClock();
  const simulator = await createSimulator({ stateFile: ':memory:', capacity: CAPACITY }, clock);
  const [here, there] = [await life(simulator, clock), await life(pair.driver, pair.clock)];
  expect(there).toEqual(here);
  const outcomes = here.map((each) => Object.values(each)[0]);
  expect(new Set(outcomes)).toEqual(
    new Set(['failed', 'pending', 'done', 'observed', 'gone', 'listed', 'counted']),
  );
  expect(pair.driver.manifest).toEqual({ ...simulator.manifest, createVisibleWithinMs: ORDER_VALID_MS });
  await simulator.close();
});

it('finishes a create that it began before it was opened again', async () => {
  await using pair = await startRemotePair();
  expect(await pair.driver.create(machineSpec(), null)).toMatchObject({ outcome: 'pending' });
  await pair.clock.advance(10 * 60_000);
  doneValue(await pair.connect().create(machineSpec(), null));
  expect(await pair.driver.list()).toMatchObject({ items: [{ ref: 'berth-1' }] });
});

/** Opens the driver with an address at which no server listens. */
async function openNowhere(): Promise<PlatformDriver> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return connectSimulator({ address: `http://127.0.0.1:${port}`, token: undefined }, new VirtualClock());
}

/** Starts a server that is not a simulator; returns its driver and a function that closes both. */
async function against(answer: (socket: Socket) => void) {
  const server = createTcpServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const driver = connectSimulator({ address, token: undefined }, new VirtualClock());
  return {
    driver,
    async [Symbol.asyncDispose]() {
      await driver.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const reply = (body: string): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;

describe('a simulator that cannot be reached proves nothing', () => {
  it('fails a step without a side effect when nothing listens, and answers unknown', async () => {
    const driver = await openNowhere();
    const reason = expect.stringContaining('no simulator answers');
    expect(await driver.get('a')).toEqual({ answer: 'unknown', reason });
    expect(await driver.list()).toEqual({ answer: 'unknown', reason });
    expect(await driver.volumes?.get('a')).toEqual({ answer: 'unknown', reason });
    expect(await driver.destroy('a', null, anOrder)).toEqual({
      outcome: 'failed',
      code: 'transient',
      sideEffect: 'none',
      detail: reason,
    });
    await driver.close();
  });

  it.each<[string, (socket: Socket) => void]>([
    ['a connection that ends', (socket) => socket.once('data', () => socket.destroy())],
    [
      'an answer that is cut',
      (socket) => socket.once('data', () => socket.end(reply('{"answer":"gone"}').slice(0, -3))),
    ],
    ['an answer that is no JSON', (socket) => socket.once('data', () => socket.end(reply('gone')))],
    [
      'an answer to another question',
      (socket) => socket.once('data', () => socket.end(reply('{"answer":"absent"}'))),
    ],
    [
      'the answer to another call',
      (socket) => socket.once('data', () => socket.end(reply('{"answer":"counted"}'))),
    ],
    ['a 500', (socket) => socket.once('data', () => socket.end(reply('{}').replace('200 OK', '500 No')))],
  ])('leaves the outcome open after %s', async (_name, answer) => {
    await using server = await against((socket) => {
      socket.on('error', () => undefined);
      answer(socket);
    });
    expect(await server.driver.get('a')).toMatchObject({ answer: 'unknown' });
    expect(await server.driver.volumes?.list()).toMatchObject({ answer: 'unknown' });
    await expect(server.driver.writer?.read('key')).rejects.toThrow();
    await expect(server.driver.destroy('a', null, anOrder)).rejects.toThrow();
  });

  it('is refused without the token, and does nothing', async () => {
    await using pair = await startRemotePair(instantly);
    const stranger = pair.connect('another-token-than-that');
    expect(await stranger.create(machineSpec(), null)).toMatchObject({ code: 'auth', sideEffect: 'none' });
    expect(await stranger.get('berth-1')).toMatchObject({ answer: 'unknown' });
    expect(await pair.driver.list()).toMatchObject({ items: [] });
  });
});

/** The first call hangs. */
function hangingOnce() {
  let calls = 0;
  return { token: undefined, plan: () => (calls++ === 0 ? ('hang' as const) : ('none' as const)) };
}

it('starts no step that was sent too long ago', async () => {
  await using pair = await startRemotePair(instantly, hangingOnce());
  const late = pair.driver.create(machineSpec({ ref: 'late' }), null);
  await expect.poll(() => pair.faulty.calls).toHaveLength(1);
  await pair.clock.advance(ORDER_VALID_MS + 1);
  pair.faulty.release();
  expect(await late).toMatchObject({ outcome: 'failed', code: 'transient', sideEffect: 'none' });
  expect(await pair.driver.get('late')).toEqual({ answer: 'gone' });
  doneValue(await pair.driver.create(machineSpec({ ref: 'in-time' }), null));
});

it('does not run a step that was cancelled while it hung', async () => {
  await using pair = await startRemotePair(instantly, hangingOnce());
  const controller = new AbortController();
  const call = { deadline: pair.clock.now() + 60_000, fence: 1, signal: controller.signal };
  const hanging = pair.driver.create(machineSpec({ ref: 'given-up' }), null, call);
  await expect.poll(() => pair.faulty.calls).toHaveLength(1);
  controller.abort();
  await expect(hanging).rejects.toThrow('was lost');
  // A round trip, so that the simulator notices the closed connection.
  await pair.driver.get('given-up');
  pair.faulty.release();
  expect(await pair.driver.list()).toEqual({ answer: 'listed', items: [] });
  expect(await pair.driver.create(machineSpec({ ref: 'given-up' }), null, call)).toMatchObject({
    code: 'transient',
    sideEffect: 'none',
  });
});

it('sends no step after its deadline, and refuses one of an earlier claim', async () => {
  await using pair = await startRemotePair(instantly);
  const { signal } = new AbortController();
  const now = pair.clock.now();
  const late = { deadline: now - 1, fence: 9, signal };
  expect(await pair.driver.create(machineSpec(), null, late)).toMatchObject({ code: 'transient' });
  const create = { deadline: now + 1_000, fence: 9, signal };
  doneValue(await pair.driver.create(machineSpec(), null, create));
  expect(await pair.connect().stop('berth-1', null, { ...create, fence: 8 })).toMatchObject({
    code: 'transient',
    sideEffect: 'none',
    detail: expect.stringContaining('a later claim'),
  });
  expect(await pair.driver.get('berth-1')).toMatchObject({ value: { power: 'running' } });
});

it('ignores requests that a web page could send', async () => {
  await using pair = await startRemotePair(instantly, { token: undefined });
  const body = JSON.stringify({ deadline: pair.clock.now(), fence: 1, arguments: [machineSpec(), null] });
  const headers = { 'Content-Type': 'text/plain', Connection: 'close' };
  const response = await fetch(`${pair.address}/driver/create`, { method: 'POST', headers, body });
  expect(response.status).toBe(415);
  expect(await pair.driver.list()).toEqual({ answer: 'listed', items: [] });
});

it.each([
  ['without an order', []],
  ['with an order that names no request', [{ at: 1 }]],
  ['with an order of an unknown reason', [{ reason: 'absent', by: 'me', at: 1 }]],
])('destroys nothing when the call comes %s', async (_name, order) => {
  await using pair = await startRemotePair(instantly, { token: undefined });
  const { volumes } = pair.driver as Required<PlatformDriver>;
  doneValue(await pair.driver.create(machineSpec(), null));
  const volume = { ref: 'vol', datacenter: 'fra', sizeGb: 10, type: 'fast', note: '' };
  doneValue(await volumes.create(volume, null));
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  for (const [call, ref] of [
    ['destroy', 'berth-1'],
    ['volumes.destroy', 'vol'],
  ]) {
    const body = JSON.stringify({
      deadline: pair.clock.now(),
      fence: 1e15,
      arguments: [ref, null, ...order],
    });
    const { status } = await fetch(`${pair.address}/driver/${call}`, { method: 'POST', headers, body });
    expect(status).toBe(500);
  }
  expect(await pair.driver.get('berth-1')).toMatchObject({ answer: 'observed' });
  expect(await volumes.get('vol')).toMatchObject({ answer: 'observed' });
});

it('counts free units without hosts to avoid, and accepts an address with a slash at its end', async () => {
  await using pair = await startRemotePair(instantly, { token: undefined });
  const driver = connectSimulator({ address: `${pair.address}/`, token: undefined }, pair.clock);
  expect(await driver.inventory?.()).toMatchObject({ answer: 'counted', free: [{ units: 2 }] });
  await driver.close();
});
