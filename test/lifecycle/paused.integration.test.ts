import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { MachineFault } from '../../src/orchestrator/model/platform-driver.ts';
import { LISTED_MS, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const SECOND_MS = 1_000;
const GRACE_MS = 60 * SECOND_MS;

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;
let berth: Berth;
let id: string;
let ref: string;
let fault: MachineFault | undefined;

/** An instance that is ONLINE; its machine is shown with `fault`. */
beforeEach(async () => {
  fault = undefined;
  berth = await startPlainOrchestrator();
  const { driver } = berth.platform;
  const { list } = driver;
  driver.list = async () => {
    const listing = await list.call(driver);
    if (listing.answer !== 'listed' || fault === undefined) return listing;
    const shown = fault;
    return { ...listing, items: listing.items.map((machine) => ({ ...machine, fault: shown })) };
  };
  id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  ref = (await berth.orchestrator.store.read.instances.byId(id))?.ownerRef ?? '';
});
afterEach(() => berth[Symbol.asyncDispose]());

const status = async () => (await berth.read(`/instances/${id}`))['status'];
const pass = async (ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= SECOND_MS) await berth.clock.advance(Math.min(left, SECOND_MS));
};
const turn = (power: 'building' | 'paused' | 'running' | 'starting' | 'stopped' | 'failed') =>
  berth.platform.change(ref, { power });
const powerNow = () => berth.platform.machines.get(ref)?.power;
const alarms = async () =>
  (await berth.orchestrator.store.read.alarms.list()).map(({ kind, subject, text }) => ({
    kind,
    subject,
    text,
  }));
const paused = () => ({
  kind: 'machine_paused',
  subject: id,
  text: expect.stringContaining('no space left'),
});
const isClaimed = () => berth.orchestrator.store.read.claims.isHeldBy(id);

async function pauseForLong(): Promise<void> {
  turn('paused');
  await berth.passUntil(`/instances/${id}`, 'STOPPED', GRACE_MS + 20 * SECOND_MS);
}

it('a paused machine is an alarm with its reason at once, and STOPPED after a minute, with its disk and its unit [machine-paused]', async () => {
  turn('paused');
  await pass(GRACE_MS - 5 * SECOND_MS);
  expect([await status(), await alarms()]).toEqual(['ONLINE', [paused()]]);
  await berth.passUntil(`/instances/${id}`, 'STOPPED', 20 * SECOND_MS);
  expect([powerNow(), await isClaimed(), berth.count('stop'), berth.count('destroy')]).toEqual([
    'paused',
    true,
    0,
    0,
  ]);
  await pass(120 * SECOND_MS);
  expect([await status(), await alarms()]).toEqual(['STOPPED', [paused()]]);
});

it('a machine that is made anew under the name of an ONLINE one is an alarm within seconds, and ERROR if it stays unfinished [unfinished-machine]', async () => {
  turn('building');
  await pass(30 * SECOND_MS);
  const unfinished = { kind: 'step_failing', subject: id, text: expect.stringContaining('unfinished') };
  expect([await status(), await alarms()]).toEqual(['ONLINE', [unfinished]]);
  turn('running');
  await pass(30 * SECOND_MS);
  expect([await status(), await alarms()]).toEqual(['ONLINE', []]);
  turn('building');
  await pass(9 * 60 * SECOND_MS);
  expect([await status(), await alarms()]).toEqual(['ONLINE', [unfinished]]);
  await berth.passUntil(`/instances/${id}`, 'ERROR', 90 * SECOND_MS);
  expect([powerNow(), berth.count('stop'), berth.count('destroy')]).toEqual(['building', 0, 0]);
});

it('the grace is kept with the row, so that it goes on after a restart of Berth', async () => {
  turn('paused');
  const begunAt = berth.clock.now();
  await pass(30 * SECOND_MS);
  const work = await berth.orchestrator.store.read.work.of(id);
  expect(work?.kind).toBe('observe');
  expect((work?.deadlineAt ?? 0) - begunAt).toBeGreaterThanOrEqual(GRACE_MS);
  expect((work?.deadlineAt ?? 0) - begunAt).toBeLessThan(GRACE_MS + LISTED_MS);
});

it('a machine that is resumed within the grace stays ONLINE, and its alarm ends', async () => {
  turn('paused');
  await pass(40 * SECOND_MS);
  turn('running');
  await pass(10 * SECOND_MS);
  expect([await status(), await alarms(), await berth.orchestrator.store.read.work.of(id)]).toEqual([
    'ONLINE',
    [],
    null,
  ]);
  turn('paused');
  await pass(GRACE_MS - 5 * SECOND_MS);
  expect(await status()).toBe('ONLINE');
});

it.each([
  ['within the grace', 53],
  ['once it is STOPPED', 600],
])(
  'one reading that fails while a machine is paused, %s, is no step that keeps failing',
  async (_when, seconds) => {
    turn('paused');
    await pass(seconds * SECOND_MS);
    const { driver } = berth.platform;
    const { get } = driver;
    let failures = 0;
    driver.get = async () => {
      failures++;
      driver.get = get;
      return { answer: 'unknown', reason: 'libvirtd was restarted' };
    };
    await pass(60 * SECOND_MS);
    expect([failures, await alarms()]).toEqual([1, [paused()]]);
  },
);

it('a start resumes it, without a boot', async () => {
  await pauseForLong();
  const boots = berth.platform.bootsOf(ref);
  await berth.post(`/instances/${id}/start`);
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await pass(LISTED_MS);
  expect([powerNow(), berth.platform.bootsOf(ref), await alarms()]).toEqual(['running', boots, []]);
});

it.each(['stopped', 'failed'] as const)(
  'one that is %s after it was paused gives its unit back [paused-then-down]',
  async (power) => {
    await pauseForLong();
    turn(power);
    await pass(40 * SECOND_MS);
    expect([await status(), await isClaimed(), await alarms()]).toEqual(['STOPPED', false, []]);
  },
);

it('one that is resumed on the platform once it is STOPPED is stopped: its tenant pays for no running machine', async () => {
  await pauseForLong();
  turn('running');
  await pass(40 * SECOND_MS);
  expect([await status(), powerNow(), await isClaimed()]).toEqual(['STOPPED', 'stopped', false]);
});

it('one that is started on the platform, and never gets an endpoint there, is stopped', async () => {
  turn('stopped');
  await berth.passUntil(`/instances/${id}`, 'STOPPED');
  const stop = vi.spyOn(berth.platform.driver, 'stop');
  turn('starting');
  await pass(40 * SECOND_MS);
  expect(stop).toHaveBeenCalled();
});

it.each(['stop', 'delete'] as const)('a %s of a paused machine is carried out', async (order) => {
  turn('paused');
  await pass(10 * SECOND_MS);
  if (order === 'stop') {
    await berth.post(`/instances/${id}/stop`);
    await berth.passUntil(`/instances/${id}`, 'STOPPED');
    expect([powerNow(), await isClaimed()]).toEqual(['stopped', false]);
  } else {
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.passUntil(`/instances/${id}`, 'GONE');
  }
  await pass(LISTED_MS);
  expect(await alarms()).toEqual([]);
});

it('a machine that runs with a fault stays ONLINE, with an alarm that says what to do until it is shown without [machine-fault]', async () => {
  fault = { finding: 'its card is on no bridge', remedy: 'put it back' };
  await pass(2 * GRACE_MS);
  const text = 'a machine has a fault: put it back (its card is on no bridge)';
  expect([await status(), await alarms()]).toEqual([
    'ONLINE',
    [{ kind: 'machine_fault', subject: id, text }],
  ]);
  fault = undefined;
  await pass(LISTED_MS);
  expect(await alarms()).toEqual([]);
});

it('two live instances at one address and port are an alarm, until one is elsewhere or does not run [endpoint-shared]', async () => {
  const otherId = await berth.create();
  await berth.passUntil(`/instances/${otherId}`, 'ONLINE');
  const otherRef = (await berth.orchestrator.store.read.instances.byId(otherId))?.ownerRef ?? '';
  const own = berth.platform.machines.get(otherRef)?.endpoint;
  const taken = berth.platform.machines.get(ref)?.endpoint;
  if (own === undefined || taken === undefined) throw new Error('they have no endpoints');
  const shared = {
    kind: 'endpoint_shared',
    subject: `${taken.publicIp}:${taken.sshPort}`,
    text: expect.stringMatching(new RegExp(`${id}.*${otherId}|${otherId}.*${id}`)),
  };
  const alarmsWith = async (machine: Parameters<typeof berth.platform.change>[1]) => {
    berth.platform.change(otherRef, machine);
    await pass(10 * SECOND_MS);
    return alarms();
  };
  expect(await alarmsWith({ endpoint: taken })).toEqual([shared]);
  expect(await alarmsWith({ endpoint: { ...taken, sshPort: taken.sshPort + 1 } })).toEqual([]);
  expect(await alarmsWith({ endpoint: taken })).toEqual([shared]);
  expect(await alarmsWith({ power: 'stopped' })).toEqual([]);
});

it('a start without the disk is ERROR with a sentence for its tenant and an alarm, and its machine stays until a DELETE [disk-lost]', async () => {
  await berth.post(`/instances/${id}/stop`);
  await berth.passUntil(`/instances/${id}`, 'STOPPED');
  const detail = 'a.qcow2 is not in the pool of kvm-1';
  berth.platform.driver.start = async () => ({
    outcome: 'failed',
    code: 'disk_lost',
    sideEffect: 'none',
    detail,
  });
  await berth.post(`/instances/${id}/start`);
  await berth.passUntil(`/instances/${id}`, 'ERROR');
  expect((await berth.read(`/instances/${id}`))['error']).toBe('The disk of this instance is lost.');
  await pass(10 * SECOND_MS);
  expect(await alarms()).toEqual([{ kind: 'disk_lost', subject: id, text: expect.stringContaining(detail) }]);
});

it.each([
  ['internal', 'Incus: Failed to run: zfs mount', true],
  ['capacity', 'kvm-1 is full', false],
] as const)(
  'a start that fails for %s leaves it STOPPED; an operator is told: %s [start-failed]',
  async (code, detail, raisesAlarm) => {
    await berth.post(`/instances/${id}/stop`);
    await berth.passUntil(`/instances/${id}`, 'STOPPED');
    const { start } = berth.platform.driver;
    berth.platform.driver.start = async () => ({ outcome: 'failed', code, sideEffect: 'none', detail });
    await berth.post(`/instances/${id}/start`);
    await pass(20 * 60 * SECOND_MS);
    const alarm = { kind: 'start_failed', subject: id, text: expect.stringContaining(detail) };
    expect([await status(), await alarms()]).toEqual(['STOPPED', raisesAlarm ? [alarm] : []]);
    berth.platform.driver.start = start;
    await berth.post(`/instances/${id}/start`);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await pass(LISTED_MS);
    expect(await alarms()).toEqual([]);
  },
);

it('the alarm about a start ends with the instance', async () => {
  await berth.post(`/instances/${id}/stop`);
  await berth.passUntil(`/instances/${id}`, 'STOPPED');
  berth.platform.driver.start = async () => ({
    outcome: 'failed',
    code: 'internal',
    sideEffect: 'none',
    detail: 'no',
  });
  await berth.post(`/instances/${id}/start`);
  await pass(20 * 60 * SECOND_MS);
  expect(await alarms()).toMatchObject([{ kind: 'start_failed' }]);
  await berth.orchestrator.request('DELETE', `/instances/${id}`);
  await berth.passUntil(`/instances/${id}`, 'GONE');
  await pass(LISTED_MS);
  expect(await alarms()).toEqual([]);
});
