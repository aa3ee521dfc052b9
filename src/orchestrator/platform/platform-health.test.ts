import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { openSqliteStore } from '../../store/sqlite/store.ts';
import type { Store } from '../model/store.ts';
import { PlatformHealth } from './platform-health.ts';

const MINUTE_MS = 60_000;
const down = { kind: 'down', problem: 'no route' } as const;

let folder: string;
let store: Store;
let clock: VirtualClock;
let alarms: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-health-'));
  store = openSqliteStore(join(folder, 'berth.db'));
  clock = new VirtualClock();
  alarms = [];
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

/** The health as seen by a process that has just started. */
function newHealth(): PlatformHealth {
  const error = (_: object, message: string) => void alarms.push(message);
  return new PlatformHealth({
    store,
    clock,
    alarms: unstoredAlarms(clock),
    platform: 'default',
    log: { ...silentLog, error },
  });
}

async function putWork(deadlineAt: number): Promise<void> {
  const work = { resourceId: 'inst-1', resourceKind: 'instance', kind: 'create' } as const;
  await store.transact((tx) => tx.work.put({ ...work, notBefore: clock.now(), deadlineAt }));
}

const deadline = async () => (await store.read.work.of('inst-1'))?.deadlineAt;
const mark = () => store.read.marks.get('platform_down_since');

describe('the health of the platform', () => {
  it('is not trusted until the first valid listing, without an alarm', async () => {
    const health = newHealth();
    expect([health.isUp, health.isSuspect, alarms.length]).toEqual([false, false, 0]);
    await health.answered(clock.now());
    expect(health.isUp).toBe(true);
  });

  it('reports its recovery once, and each kind of problem once', async () => {
    const health = newHealth();
    let recoveries = 0;
    const unlisten = health.onRecovery(() => {
      recoveries++;
    });
    await health.answered(clock.now());
    await health.answered(clock.now());
    for (const kind of ['down', 'down', 'suspect', 'suspect'] as const)
      await health.reportProblem({ kind, problem: 'a problem' }, clock.now());
    expect([recoveries, alarms.length, health.isSuspect]).toEqual([1, 2, true]);
    unlisten();
    await health.answered(clock.now());
    expect([recoveries, health.isUp]).toEqual([1, true]);
  });

  it('moves deadlines by the length of an outage, also across a restart of the process that saw it begin', async () => {
    const deadlineAt = clock.now() + 10 * MINUTE_MS;
    await putWork(deadlineAt);
    const first = newHealth();
    await first.answered(clock.now());
    await first.reportProblem(down, clock.now());
    await clock.advance(20 * MINUTE_MS);
    await first.reportProblem(down, clock.now());
    const second = newHealth();
    await second.reportProblem(down, clock.now());
    await clock.advance(5 * MINUTE_MS);
    await second.answered(clock.now());
    expect([await deadline(), await mark()]).toEqual([deadlineAt + 25 * MINUTE_MS, null]);
    await first.answered(clock.now());
    expect(await deadline()).toBe(deadlineAt + 25 * MINUTE_MS);
  });

  it('does not recover by a listing that began before the credentials were refused', async () => {
    const health = newHealth();
    await health.answered(clock.now());
    const begunAt = clock.now();
    await clock.advance(1_000);
    health.refused('inst-1', 'the key is revoked');
    health.refused('inst-2', 'the key is revoked');
    await health.answered(begunAt);
    expect([health.isUp, await mark()]).toEqual([false, clock.now()]);
    await clock.advance(1_000);
    await health.answered(clock.now());
    expect([health.isUp, await mark()]).toEqual([true, null]);
  });

  it('is not affected by one refused order among accepted ones', async () => {
    const health = newHealth();
    await health.answered(clock.now());
    health.refused('inst-1', 'this machine is locked');
    health.accepted();
    health.refused('inst-2', 'this machine is locked');
    expect(health.isUp).toBe(true);
    health.refused('inst-3', 'the key is revoked');
    expect(health.isUp).toBe(false);
  });

  it('is not affected by repeated refusals for one resource', async () => {
    const health = newHealth();
    await health.answered(clock.now());
    for (let nth = 0; nth < 3; nth++) health.refused('inst-1', 'this machine is locked');
    expect([health.isUp, alarms]).toEqual([true, []]);
  });

  it('stays untrusted while the store cannot say how long the outage was', async () => {
    const health = newHealth();
    await store.close();
    await expect(health.answered(clock.now())).rejects.toThrow();
    expect(health.isUp).toBe(false);
    store = openSqliteStore(join(folder, 'berth.db'));
  });
});
