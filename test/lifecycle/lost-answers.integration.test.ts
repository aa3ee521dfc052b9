import { describe, expect, it } from 'vitest';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { silentLog } from '../support/doubles/log.ts';
import { everyProbeWorks, plainEndpoint } from '../support/doubles/plain-platform.ts';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { first, online, type PlainOrchestrator } from './lost-answers.fixture.ts';

async function stopped(berth: PlainOrchestrator): Promise<string> {
  const id = await online(berth);
  await berth.post(`/instances/${id}/stop`);
  await berth.passUntil(`/instances/${id}`, 'STOPPED');
  return id;
}

describe('a call whose answer is lost is looked for, not repeated:', () => {
  it('a stop', async () => {
    await using berth = await startPlainOrchestrator(first('stop', 'fail-after'));
    await stopped(berth);
    expect(berth.count('stop')).toBe(1);
  });

  it('a start', async () => {
    await using berth = await startPlainOrchestrator(first('start', 'fail-after'));
    const id = await stopped(berth);
    await berth.post(`/instances/${id}/start`);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    expect(berth.count('start')).toBe(1);
  });
});

it('a create whose machine needs another call goes on with the one that is there, on the host that has it now [create-in-several-calls]', async () => {
  const hosts: unknown[] = [];
  // Two calls make it, and it is being made until the second one; the answer to the first is lost, and it is moved.
  const wrapDriver = ({ create, get, ...driver }: PlatformDriver): PlatformDriver => ({
    ...driver,
    place: async () => ({ answer: 'placed', hosts: [{ host: 'h1', units: 1, counted: [] }] }),
    create: async (spec, cookie, call) => {
      const step = await create(spec, cookie, call);
      if (hosts.push(spec.host) === 1) throw new Error('the answer was lost');
      return step;
    },
    get: async (ref) => {
      const found = await get(ref);
      return found.answer === 'observed' && hosts.length < 2
        ? { answer: 'observed', value: { ...found.value, host: 'h2', power: 'building' } }
        : found;
    },
  });
  await using berth = await startPlainOrchestrator(() => 'none', { wrapDriver });
  await online(berth);
  expect(hosts).toEqual(['h1', 'h2']);
});

describe('a call that did not get through is sent again:', () => {
  it('a stop', async () => {
    await using berth = await startPlainOrchestrator(first('stop', 'fail-before'));
    await stopped(berth);
    expect(berth.count('stop')).toBe(2);
  });

  it('a start', async () => {
    await using berth = await startPlainOrchestrator(first('start', 'fail-before'));
    const id = await stopped(berth);
    await berth.post(`/instances/${id}/start`);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    expect(berth.count('start')).toBe(2);
  });
});

it.each(['stop', 'start'] as const)(
  'a %s is not sent again while the platform cannot be asked',
  async (method) => {
    await using berth = await startPlainOrchestrator(first(method, 'fail-before'));
    const id = method === 'stop' ? await online(berth) : await stopped(berth);
    berth.setPlan((call, nth) => {
      if (call.method === 'get') return 'unknown';
      return call.method === method && nth === 1 ? 'fail-before' : 'none';
    });
    await berth.post(`/instances/${id}/${method}`);
    const before = berth.count('get');
    await berth.clock.advance(20_000);
    expect(berth.count('get')).toBeGreaterThan(before + 2);
    expect(berth.count(method)).toBe(1);
    berth.setPlan(() => 'none');
    await berth.passUntil(`/instances/${id}`, method === 'stop' ? 'STOPPED' : 'ONLINE');
  },
);

describe('a create that fails', () => {
  const refusal = { kind: 'misclaim', code: 'capacity', isDone: true } as const;

  it('and may have made the machine all the same is looked for: the machine is adopted [create-fails-machine-made]', async () => {
    await using berth = await startPlainOrchestrator(first('create', { ...refusal, sideEffect: 'possible' }));
    await online(berth);
    expect([berth.count('create'), berth.platform.machines.size]).toEqual([1, 1]);
  });

  it.each(['none', 'certain'] as const)(
    'for good, with a machine that the platform says to be of %s, is ERROR, and the machine is removed',
    async (sideEffect) => {
      await using berth = await startPlainOrchestrator(first('create', { ...refusal, sideEffect }));
      const id = await berth.create();
      await berth.passUntil(`/instances/${id}`, 'ERROR');
      await berth.clock.advance(5_000);
      expect(berth.platform.machines.size).toBe(0);
      expect(await berth.orchestrator.store.read.claims.isHeldBy(id)).toBe(false);
    },
  );
});

describe('on a platform that shows a machine only after minutes', () => {
  const visible = { createVisibleWithinMs: 240_000 };
  const closed: SshProbe = { probe: async () => ({ ok: false, step: 'connect', detail: 'closed' }) };

  it('a create whose answer was lost is not sent a second time, and adopted when it turns up [create-not-sent-twice]', async () => {
    await using berth = await startPlainOrchestrator(first('create', { kind: 'late', ms: 200_000 }), {
      manifest: visible,
    });
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE', 300_000);
    expect([berth.count('create'), berth.platform.machines.size]).toEqual([1, 1]);
  });

  it('a create that never arrived is sent again after that time, once', async () => {
    await using berth = await startPlainOrchestrator(first('create', 'fail-before'), { manifest: visible });
    const id = await berth.create();
    expect(await berth.passUntil(`/instances/${id}`, 'ONLINE', 300_000)).toBeGreaterThanOrEqual(240_000);
    expect(berth.count('create')).toBe(2);
  });

  it.each([
    ['was lost', 'fail-before'],
    ['came just now', 'none'],
  ] as const)('a DELETE waits for a create whose answer %s', async (_name, fault) => {
    await using berth = await startPlainOrchestrator(first('create', fault), {
      manifest: visible,
      probe: closed,
    });
    // What is made stays hidden: a machine that is shown is not waited for.
    berth.platform.driver.get = async () => ({ answer: 'gone' });
    berth.platform.driver.list = async () => ({ answer: 'listed', items: [] });
    const id = await berth.create();
    await berth.clock.advance(1_000);
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    const tookMs = await berth.passUntil(`/instances/${id}`, 'GONE', 300_000);
    expect(tookMs).toBeGreaterThan(230_000);
    expect(tookMs).toBeLessThan(260_000);
  });

  it('a DELETE waits for nothing once the platform was seen to remove the machine', async () => {
    await using berth = await startPlainOrchestrator(() => 'none', { manifest: visible, probe: closed });
    const { driver } = berth.platform;
    const remove = driver.destroy;
    const removing = { outcome: 'pending', cookie: 'removing', pollAfterMs: 1_000 } as const;
    driver.destroy = async (ref, cookie) => (cookie === null ? removing : remove(ref, cookie, anOrder));
    const id = await berth.create();
    await berth.clock.advance(1_000);
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    expect(await berth.passUntil(`/instances/${id}`, 'GONE')).toBeLessThan(20_000);
  });

  it('a machine that no listing shows yet stays PROVISIONING, comes ONLINE, and makes nobody doubt the platform [machine-not-listed-yet]', async () => {
    const alarms: object[] = [];
    let isOpen = false;
    const probe: SshProbe = {
      probe: (...args) => (isOpen ? everyProbeWorks : closed).probe(...args),
    };
    const hidden: Plan = ({ method }) => (method === 'list' ? { kind: 'lag', ms: 200_000 } : 'none');
    await using berth = await startPlainOrchestrator(hidden, {
      manifest: visible,
      probe,
      log: { ...silentLog, error: (fields) => alarms.push(fields) },
    });
    const ids = [await berth.create(), await berth.create(), await berth.create()];
    const passAs = async (status: string, ms: number): Promise<void> => {
      for (const endAt = berth.clock.now() + ms; berth.clock.now() < endAt; ) {
        await berth.clock.advance(2_500);
        const { instances } = await berth.read('/instances');
        expect(instances).toMatchObject(ids.map(() => ({ status })));
        expect((await berth.read('/availability'))['configurations']).not.toEqual([]);
      }
    };
    await passAs('PROVISIONING', 60_000);
    isOpen = true;
    for (const id of ids) await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await passAs('ONLINE', 200_000);
    expect([alarms, berth.count('create'), berth.platform.machines.size]).toEqual([[], 3, 3]);
  });

  it('a machine that is not shown yet is waited for before it counts as lost [machine-not-shown-yet]', async () => {
    let isShown = false;
    const probe: SshProbe = {
      probe: (...args) => (isShown ? everyProbeWorks : closed).probe(...args),
    };
    const hidden: Plan = ({ method }) =>
      !isShown && method === 'list' ? { kind: 'lag', ms: 200_000 } : 'none';
    await using berth = await startPlainOrchestrator(hidden, { manifest: visible, probe });
    const look = berth.platform.driver.get;
    berth.platform.driver.get = async (ref) => (isShown ? look(ref) : { answer: 'gone' });
    const id = await berth.create();
    await berth.clock.advance(100_000);
    expect((await berth.read(`/instances/${id}`))['status']).toBe('PROVISIONING');
    isShown = true;
    await berth.passUntil(`/instances/${id}`, 'ONLINE', 300_000);
  });
});

it('a platform that refuses our credentials fails no create, however often, and sells nothing meanwhile', async () => {
  const refused = { kind: 'misclaim', code: 'auth', sideEffect: 'none', isDone: false } as const;
  const refuse: Plan = ({ method }) => (method === 'create' ? refused : 'none');
  await using berth = await startPlainOrchestrator(refuse, { reconcile: { watchIntervalMs: 30_000 } });
  const id = await berth.create();
  await berth.create();
  await berth.clock.advance(10);
  expect((await berth.read('/availability'))['configurations']).toEqual([]);

  for (let minute = 0; minute < 9; minute++) {
    await berth.clock.advance(60_000);
  }
  expect(berth.count('create')).toBeGreaterThan(8);
  expect((await berth.read(`/instances/${id}`))['status']).toBe('PROVISIONING');
  expect((await berth.orchestrator.store.read.work.of(id))?.attempt).toBeLessThanOrEqual(1);
  berth.setPlan(() => 'none');
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
});

describe('a proof before which no host key was known [first-proof-other-host]', () => {
  it.each([
    [
      'is not believed of a machine that moved, until it is where the proof was',
      { endpoint: { ...plainEndpoint, publicIp: '192.0.2.9' } },
    ],
    ['is not believed of a machine that is off', { power: 'stopped' }],
  ] as const)('%s', async (_name, change) => {
    await using berth = await startPlainOrchestrator(() => 'none', { manifest: { resume: false } });
    const { driver } = berth.platform;
    const create = driver.create;
    driver.create = async (spec, cookie) => {
      const step = await create(spec, cookie);
      berth.platform.change(spec.ref, change);
      return step;
    };
    const id = await berth.create();
    if ('endpoint' in change) {
      await berth.passUntil(`/instances/${id}`, 'ONLINE');
      expect((await berth.read(`/instances/${id}`))['public_ip']).toBe(change.endpoint.publicIp);
    } else await berth.passUntil(`/instances/${id}`, 'ERROR');
  });
});

it('a host key that comes with the address pins the first proof [first-proof-host-key-pinned]', async () => {
  const pins: (string | undefined)[] = [];
  const probe: SshProbe = {
    probe: (target, keys, hostKeyFingerprint) => {
      pins.push(hostKeyFingerprint);
      return everyProbeWorks.probe(target, keys);
    },
  };
  await using berth = await startPlainOrchestrator(() => 'none', { probe });
  const { platform } = berth;
  const { create, start } = platform.driver;
  platform.driver.create = async (spec, cookie) => {
    await create(spec, cookie);
    return { outcome: 'done', value: platform.change(spec.ref, { endpoint: null, power: 'stopped' }) };
  };
  platform.driver.start = async (ref, cookie) => {
    const step = await start(ref, cookie);
    if (step.outcome !== 'done') return step;
    const endpoint = { ...plainEndpoint, hostKeyFingerprint: 'SHA256:plain' };
    return { outcome: 'done', value: platform.change(ref, { endpoint }) };
  };
  await online(berth);
  expect(pins.at(-1)).toBe('SHA256:plain');
});
