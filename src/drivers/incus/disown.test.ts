import { expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { aCluster } from './cluster.fixture.ts';
import { forwardMark, mark, UUID } from './translate.ts';

const REF = 'berth-a';
const VOLUME = 'berth-v';
const DONE = { outcome: 'done', value: null };
const STOPPED = 102;

const port = (ref: string, listen: number) => ({
  description: forwardMark(ref, 'default'),
  protocol: 'tcp',
  listen_port: String(listen),
  target_port: '22',
  target_address: '10.0.0.5',
});
const portForwards = { ports: '22000-22009', addresses: { m1: '192.0.2.1' } };
const root = { type: 'disk', path: '/', pool: 'default', size: '10GiB' };

/** A stopped machine with a volume, a GPU, a port, and a disk and a setting from another party. */
async function aMachine({ code = STOPPED, config = {} as Record<string, string> } = {}) {
  const cluster = await aCluster();
  const driver = cluster.open({ port_forwards: portForwards });
  cluster.machines.set(REF, {
    location: 'm1',
    code,
    config: {
      [mark.createdBy]: 'berth',
      [mark.ref]: REF,
      [mark.phase]: 'created',
      [mark.note]: 'a note',
      [mark.uuid]: 'u1',
      [UUID]: 'u1',
      'user.theirs': 'x',
      'limits.cpu': '2',
      ...config,
    },
    devices: {
      root,
      gpu0: { type: 'gpu', gputype: 'physical', pci: '0000:18:00.0' },
      theirs: { type: 'disk', pool: 'default', source: 'theirs', path: '/theirs' },
    },
  });
  cluster.volumes.push({ name: 'theirs', location: 'm1', config: {}, data: 'theirs', usedBy: [REF] });
  cluster.volumes.push({
    name: VOLUME,
    location: 'm1',
    config: { [mark.createdBy]: 'berth', [mark.ref]: VOLUME },
    data: 'what the tenant wrote',
    usedBy: [],
  });
  cluster.forwards.push({
    listen_address: '192.0.2.1',
    description: 'ports of machines of Berth',
    config: {},
    location: 'm1',
    ports: [port(REF, 22_001), port('berth-b', 22_002)],
  });
  await driver.volumes.attach(VOLUME, REF, null);
  return { cluster, driver, machine: () => cluster.machines.get(REF) };
}

it('a disowned machine is gone for Berth, and keeps its foreign configuration', async () => {
  const { cluster, driver, machine } = await aMachine();
  expect(await driver.disown?.(REF, null)).toEqual(DONE);
  expect(machine()).toMatchObject({
    config: { [UUID]: 'u1', 'user.theirs': 'x', 'limits.cpu': '2' },
    devices: { root, theirs: { source: 'theirs' } },
  });
  expect(Object.keys(machine()?.config ?? {})).toHaveLength(3);
  expect(Object.keys(machine()?.devices ?? {})).toEqual(['root', 'theirs']);
  expect(await driver.get(REF)).toMatchObject({ answer: 'gone' });
  const listing = await driver.list();
  expect(listing).toMatchObject({ items: [], copies: [] });
  expect(listing).not.toHaveProperty('leftovers.0');
  expect(cluster.forwards[0]?.ports).toEqual([port('berth-b', 22_002)]);
  expect(await driver.disown?.(REF, null)).toEqual(DONE);
});

it('a stop, start or destroy of a disowned machine changes nothing', async () => {
  const { cluster, driver, machine } = await aMachine();
  await driver.disown?.(REF, null);
  const before = structuredClone(machine());
  cluster.log.length = 0;
  const gone = { outcome: 'failed', code: 'gone', sideEffect: 'none' };
  expect(await driver.stop(REF, null)).toMatchObject(gone);
  expect(await driver.start(REF, null)).toMatchObject(gone);
  expect(await driver.destroy(REF, null, anOrder)).toEqual(DONE);
  expect(machine()).toEqual(before);
  expect(cluster.log).toEqual([]);
});

it('a volume of a disowned machine stays Berth’s, and is detached', async () => {
  const { cluster, driver } = await aMachine();
  expect(await driver.volumes.get(VOLUME)).toMatchObject({ value: { attachedTo: [REF] } });
  await driver.disown?.(REF, null);
  expect(await driver.volumes.get(VOLUME)).toMatchObject({ value: { ref: VOLUME, attachedTo: [] } });
  expect(cluster.at('m1', VOLUME)?.data).toBe('what the tenant wrote');
});

it('a machine that runs, or whose create never completed, is not disowned', async () => {
  const running = await aMachine({ code: 103 });
  expect(await running.driver.disown?.(REF, null)).toEqual({
    outcome: 'failed',
    code: 'conflict',
    sideEffect: 'none',
    detail: `${REF} is running: stop it first`,
  });
  const half = await aMachine({ config: { [mark.phase]: 'built' } });
  expect(await half.driver.disown?.(REF, null)).toMatchObject({
    code: 'conflict',
    detail: expect.stringContaining('destroy it instead'),
  });
  for (const { cluster, machine } of [running, half]) {
    expect(machine()?.config?.[mark.ref]).toBe(REF);
    expect(cluster.forwards[0]?.ports).toHaveLength(2);
  }
});

it('a machine that changes while it is disowned is read again', async () => {
  const { cluster, driver, machine } = await aMachine();
  const { answer } = cluster;
  let isStarted = false;
  cluster.answer = async (sent) => {
    // Incus records a start in the configuration.
    if (sent.method === 'PUT' && sent.path.endsWith(REF) && !isStarted) {
      isStarted = true;
      const started = machine();
      if (started !== undefined) {
        started.code = 103;
        started.config = { ...started.config, 'volatile.last_state.power': 'RUNNING' };
      }
    }
    return answer.call(cluster, sent);
  };
  expect(await driver.disown?.(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(await driver.disown?.(REF, 'disown')).toMatchObject({ code: 'conflict' });
  expect(machine()?.config?.[mark.ref]).toBe(REF);
});

it('a machine is not disowned while another instance has its mark', async () => {
  const { cluster, driver, machine } = await aMachine();
  const { [mark.uuid]: _noted, ...config } = machine()?.config ?? {};
  cluster.machines.set('backup', { location: 'm1', code: STOPPED, config, devices: { root } });
  expect(await driver.disown?.(REF, null)).toMatchObject({
    code: 'conflict',
    detail: expect.stringContaining('backup'),
  });
  expect(machine()?.config?.[mark.ref]).toBe(REF);
});
