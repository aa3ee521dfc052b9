import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../sandbox.ts';
import { armingSchemaOf, checkedArming } from './arming.ts';
import { benchOf, startBench } from './bench.fixture.ts';
import { type FaultName, faultNames } from './catalog/catalog.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startBench();
});
afterAll(() => sandbox.close());
afterEach(() => {
  sandbox.faults.load({ made: 0, armed: [], events: [], stuck: [] });
});

async function statuses(bench: Awaited<ReturnType<typeof benchOf>>, count: number, path = '/instances') {
  const seen: number[] = [];
  for (let request = 0; request < count; request++) seen.push((await bench.ask('GET', path)).status);
  return seen;
}

describe('an armed fault', () => {
  it('triggers once, k times, or until it is disarmed', async () => {
    const bench = await benchOf(sandbox);
    await bench.arm('http-500');
    expect(await statuses(bench, 2)).toEqual([500, 200]);
    await bench.arm('http-503', { times: 2 });
    expect(await statuses(bench, 3)).toEqual([503, 503, 200]);
    const sticky = await bench.arm('http-401', { times: 'sticky' });
    expect(await statuses(bench, 4)).toEqual([401, 401, 401, 401]);
    expect(sandbox.faults.disarm(sticky.id)).toBe(true);
    expect(await statuses(bench, 1)).toEqual([200]);
    expect(sandbox.faults.disarm(sticky.id)).toBe(false);
  });

  it('spares the first occasions, and ends after a time', async () => {
    const bench = await benchOf(sandbox);
    await bench.arm('http-500', { skip: 2 });
    expect(await statuses(bench, 4)).toEqual([200, 200, 500, 200]);
    await bench.arm('http-500', { times: 'sticky', for_ms: 10_000 });
    expect(await statuses(bench, 1)).toEqual([500]);
    await bench.pass(10);
    expect(await statuses(bench, 1)).toEqual([200]);
  });

  it('is limited to one provider, one route, one instance', async () => {
    const bench = await benchOf(sandbox);
    const other = await benchOf(sandbox, 'e');
    const [id, second] = [await bench.make(), await bench.make('two')];
    await sandbox.faults.arm('http-500', { provider: 'provider-e', times: 'sticky' });
    expect(await statuses(bench, 1)).toEqual([200]);
    expect(await statuses(other, 1)).toEqual([500]);
    await bench.arm('http-503', { route: ['GET /availability', 'GET /instances/{id}'], instance: id });
    expect(await statuses(bench, 1, `/instances/${second}`)).toEqual([200]);
    expect(await statuses(bench, 2, `/instances/${id}`)).toEqual([503, 200]);
  });

  it('is drawn from the seed: it triggers on the same occasions for the same seed, others for another', async () => {
    const run = async (seed: number) => {
      const fresh = await startBench({ seed: 5 });
      const bench = await benchOf(fresh);
      await bench.arm('http-500', { times: 'sticky', probability: 0.3, seed });
      const seen = await statuses(bench, 60);
      await fresh.close();
      return seen;
    };
    const first = await run(1);
    expect(await run(1)).toEqual(first);
    expect(await run(2)).not.toEqual(first);
    const affected = first.filter((status) => status === 500).length;
    expect(affected).toBeGreaterThan(5);
    expect(affected).toBeLessThan(40);
  });

  it('counted for a machine triggers at polls of that machine', async () => {
    const bench = await benchOf(sandbox);
    const id = await bench.make();
    const armed = await bench.arm('guest-power-off', { instance: id, skip: 2 });
    await bench.pass(60);
    expect(armed.hits).toBe(0);
    await bench.read(id);
    await bench.read(id);
    expect(armed.hits).toBe(0);
    await bench.read(id);
    expect(armed.hits).toBe(1);
    await bench.until(id, 'STOPPED');
  });

  it('waits for a machine that it fits', async () => {
    const bench = await benchOf(sandbox);
    const { body } = await bench.order('soon');
    const armed = await bench.arm('guest-power-off', { instance: body.id });
    expect(armed.hits).toBe(0);
    await bench.until(body.id, 'STOPPED');
  });

  it('goes together with others: the connection outside, then the answer, then the status', async () => {
    const bench = await benchOf(sandbox);
    await bench.arm('http-500');
    await bench.arm('latency', { ms: 1_000, times: 1 });
    const before = sandbox.clock.now();
    expect(await statuses(bench, 2)).toEqual([500, 200]);
    expect(sandbox.clock.now() - before).toBe(1_000);
    expect(sandbox.faults.events.map(({ fault }) => fault)).toEqual(['latency', 'http-500']);
  });

  it('reports each time that it triggered', async () => {
    const bench = await benchOf(sandbox);
    await bench.arm('http-500');
    await bench.order('x');
    expect(sandbox.faults.events).toMatchObject([{ id: 'fault-1', step: 'provider-d POST /instances' }]);
    expect(sandbox.faults.list()).toEqual([]);
    expect(sandbox.faults.list({ all: true })).toMatchObject([
      { id: 'fault-1', hits: 1, seen: 1, isOver: true },
    ]);
  });
});

describe('the options of a fault', () => {
  it('has a schema for each fault, with its settings', () => {
    for (const fault of faultNames)
      expect(armingSchemaOf(fault).parse({ fault })).toMatchObject({ fault, skip: 0 });
  });

  it.each([
    ['an unknown fault', 'gremlins', {}, 'fault'],
    ['an unknown setting', 'http-500', { ms: 3 }, 'ms'],
    ['a probability above 1', 'http-500', { probability: 2 }, 'probability'],
    ['no times at all', 'http-500', { times: 0 }, 'times'],
    ['a call of the driver for an answer', 'http-500', { route: 'create' }, 'a method and a path'],
    [
      'a path for a call of the driver',
      'platform-locked',
      { route: 'GET /instances' },
      'a call of the driver',
    ],
    ['a route for what happens to machines', 'spot-reclaim', { route: 'GET /instances' }, 'no route'],
  ])('refuses %s', (_name, fault, options, named) => {
    expect(() => checkedArming(fault as FaultName, options)).toThrow(named);
  });

  it('may be armed for ever with times: Infinity, in process and through the control API', async () => {
    const bench = await benchOf(sandbox);
    await bench.arm('http-500', { times: Number.POSITIVE_INFINITY });
    expect(await statuses(bench, 3)).toEqual([500, 500, 500]);
    const times = Number.POSITIVE_INFINITY;
    await sandbox.control.faults.arm('http-429', { times, retry_after_s: 7 });
    expect(sandbox.faults.list()).toMatchObject([
      { fault: 'http-429', options: { times: 'sticky' } },
      { fault: 'http-500', options: { times: 'sticky' } },
    ]);
    sandbox.faults.disarm('fault-1');
    expect((await bench.ask('GET', '/instances')).headers.get('retry-after')).toBe('7');
  });

  it('is refused in process too', async () => {
    await expect(sandbox.faults.arm('latency', { ms: -1 })).rejects.toThrow(/ms/);
  });

  it('is refused for a route that no server has, with the nearest one', async () => {
    const arm = (route: string) => sandbox.faults.arm('http-500', { route });
    await expect(arm('GET /instance/{id}')).rejects.toThrow('the nearest is GET /instances/{id}');
    await arm('* /volumes');
  });
});
