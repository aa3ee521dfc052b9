import { beforeEach, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { accountId, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from './context.ts';
import { LossCap } from './loss-cap.ts';
import { recordHosts } from './visibility.ts';

const MINUTE_MS = 60_000;
const LAST_RETRY_MS = 30_000;

let store: Store;
let clock: VirtualClock;
let alarms: object[];
let losses: LossCap;

beforeEach(async () => {
  store = await openTestStore();
  clock = new VirtualClock();
  alarms = [];
  losses = new LossCap({
    clock,
    alarms: unstoredAlarms(clock),
    log: { ...silentLog, error: (fields) => void alarms.push(fields) },
    options: {
      lastRetryMs: LAST_RETRY_MS,
      maxLosses: { share: 0.2, least: 2 },
    },
  });
  await store.transact((tx) =>
    tx.credentials.insertAccount({ id: accountId, name: 'one', passwordHash: null, createdAt: 0 }),
  );
});

async function insert(count: number, status: InstanceRecord['status'] = 'ONLINE'): Promise<void> {
  await store.transact(async (tx) => {
    for (let nth = 0; nth < count; nth++)
      await tx.instances.insert({ ...instance(`${status}-${nth}`), status });
  });
}

/** Writes the loss of the instance if the cap admits it. */
async function recordLoss(nth: number): Promise<boolean> {
  return store.transact(async (tx) => {
    const record = await tx.instances.byId(`ONLINE-${nth}`);
    if (record === null) throw new Error('no such instance');
    const isAdmitted = await losses.admits(tx, record);
    if (isAdmitted) await tx.instances.update({ ...record, status: 'ERROR' });
    return isAdmitted;
  });
}

async function loseAll(count: number): Promise<number> {
  let lost = 0;
  for (let nth = 0; nth < count; nth++) if (await recordLoss(nth)) lost++;
  return lost;
}

it.each([
  { live: 4, may: 2 },
  { live: 10, may: 2 },
  { live: 20, may: 4 },
  { live: 50, may: 10 },
])(
  'of $live instances $may may be lost: the share of what there was, or the least',
  async ({ live, may }) => {
    await insert(live);
    expect(await loseAll(live)).toBe(may);
  },
);

it('does not count instances without a machine to lose', async () => {
  await insert(4);
  await insert(50, 'PROVISIONING');
  await insert(50, 'OFFLINE');
  expect(await loseAll(4)).toBe(2);
});

it('lets more be lost when the window has passed', async () => {
  await insert(6);
  expect(await loseAll(3)).toBe(2);
  await clock.advance(10 * MINUTE_MS + 1);
  expect(await loseAll(6)).toBe(2);
});

it('lets all be lost while losses are accepted, and counts them', async () => {
  await insert(6);
  await store.transact((tx) => tx.marks.put('losses_accepted_until', clock.now() + MINUTE_MS));
  expect(await loseAll(5)).toBe(5);
  await clock.advance(MINUTE_MS);
  expect(await recordLoss(5)).toBe(false);
});

it('raises one alarm per window, with the number of held instances', async () => {
  await insert(6);
  await loseAll(6);
  for (const nth of [2, 3, 4, 5]) expect(await recordLoss(nth)).toBe(false);
  expect(alarms).toMatchObject([{ losses: 2, cap: 2 }]);
  expect(losses.held).toBe(4);
  await store.transact((tx) => tx.marks.put('losses_accepted_until', clock.now() + MINUTE_MS));
  await recordLoss(5);
  expect(losses.held).toBe(3);
  await clock.advance(2 * LAST_RETRY_MS + 1);
  expect(losses.held).toBe(0);
});

it('holds the instances of one host beyond its own cap, with an alarm that names it [losses-by-host]', async () => {
  await insert(60);
  await store.transact(async (tx) => {
    for (let nth = 0; nth < 60; nth++) {
      const record = await tx.instances.byId(`ONLINE-${nth}`);
      // The caps: 12 of 60 instances, and two of the six on one host.
      if (record !== null) await tx.instances.update({ ...record, host: nth < 6 ? 'rack-1' : 'rack-2' });
    }
  });
  expect(await loseAll(6)).toBe(2);
  expect(alarms).toEqual([expect.objectContaining({ host: 'rack-1', losses: 2, cap: 2 })]);
  expect(losses.held).toBe(4);
  expect(await recordLoss(6)).toBe(true);
});

it('losses on one platform do not use the cap of another [losses-by-platform]', async () => {
  await insert(4);
  await store.transact(async (tx) => {
    for (const nth of [2, 3]) {
      const record = await tx.instances.byId(`ONLINE-${nth}`);
      if (record !== null) await tx.instances.update({ ...record, platform: 'east' });
    }
    for (const instanceId of ['ONLINE-0', 'ONLINE-1']) await tx.losses.add({ instanceId, at: clock.now() });
  });
  expect([await recordLoss(1), await recordLoss(2)]).toEqual([false, true]);
});

it('counts a loss for the host that lost it, also when its machine reappears on another [loss-host-kept]', async () => {
  await insert(50);
  const host = async (nth: number, name: string) => {
    await recordHosts({ store, clock } as unknown as ReconcileContext, [[`ONLINE-${nth}`, name]]);
    return (await store.read.instances.byId(`ONLINE-${nth}`))?.host;
  };
  for (const nth of [0, 1, 2, 3]) expect(await host(nth, 'one')).toBe('one');
  expect(await loseAll(3)).toBe(2);
  for (const nth of [0, 1]) expect(await host(nth, 'two')).toBe('one');
  expect(await recordLoss(2)).toBe(false);
  expect(await host(2, 'two')).toBe('two');
  expect(await recordLoss(2)).toBe(true);
});
