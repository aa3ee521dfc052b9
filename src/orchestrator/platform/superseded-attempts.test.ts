import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { account, accountId, now, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import type { ObservedVolume, Presence } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/records.ts';
import { putVolumeWork } from '../model/rows.ts';
import type { Store } from '../model/store.ts';
import { toVolumeMoveCookie } from '../model/work.ts';
import { VolumeSweep } from '../reconciliation/sweep-volumes.ts';
import type { ReconcileContext } from './context.ts';
import { Sightings } from './sightings.ts';
import { areOthersClosed, removeOtherAttempt, supersede } from './superseded-attempts.ts';

const ID = 'vol-00000000000000000000000000000001';
const [G0, G1, G2] = [`berth-${ID}`, `berth-${ID}-g1`, `berth-${ID}-g2`];
const order = recordedOrder({ reason: 'tenant', by: accountId, at: now });
const clock = new VirtualClock(now);

const row = volume(ID, { ownerRef: G1, status: 'AVAILABLE', host: 'a' });

let store: Store;
let context: ReconcileContext;
let alarms: ReturnType<typeof unstoredAlarms>;
/** The platform's volumes by name. */
let shown: Map<string, ObservedVolume>;

beforeEach(async () => {
  store = await openTestStore();
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.volumes.insert(row);
  });
  shown = new Map();
  alarms = unstoredAlarms(clock);
  const get = async (ref: string): Promise<Presence<ObservedVolume>> => {
    const value = shown.get(ref);
    return value === undefined ? { answer: 'gone' } : { answer: 'observed', value };
  };
  context = {
    ...{ store, clock, platform: 'default', installationId: 'here', otherPlatforms: new Set() },
    alarms,
    log: silentLog,
    driver: { manifest: { keepsNotes: true }, volumes: { get } },
    volumes: { confirmAbsent: async (ref: string) => (shown.has(ref) ? 'it is listed' : undefined) },
    sightings: new Sightings({ store, clock, platform: 'default', options: { restoreDoubtMs: 0 } }),
    options: { orphanGraceMs: 0, leaseMs: 4_000, callTimeoutMs: 1_000 },
  } as unknown as ReconcileContext;
});

const change = (changes: Partial<VolumeRecord>) =>
  store.transact((tx) => tx.volumes.update({ ...row, ...changes }));
const seen = (ref: string) => removeOtherAttempt(context, 'volume', { id: ID, ref });
const isRemoved = async (ref: string) => (await store.read.work.of(ref))?.kind === 'destroy';

describe('a resource listed under another name than in its row', () => {
  it('is removed under an order if it is an earlier attempt', async () => {
    expect(await seen(G0)).toBe('removed');
    expect(await isRemoved(G0)).toBe(true);
    expect(await store.read.attempts.byRef(G0)).toMatchObject({ destroyOrder: { reason: 'failed_create' } });
  });

  it('stays while the volume is being copied to that name, also after a restart', async () => {
    await store.transact(async (tx) => {
      const cookie = toVolumeMoveCookie('inst-1', { target: G2, host: 'b', driver: null });
      await tx.attempts.put({
        ...{ resourceId: ID, resourceKind: 'volume', platform: 'default', ref: G2, host: 'b' },
        ...{ openedAt: now, closedAt: null, destroyOrder: order },
      });
      await tx.work.put({
        ...{ resourceId: ID, resourceKind: 'volume', kind: 'attach', cookie },
        ...{ notBefore: now, deadlineAt: null },
      });
    });
    expect([await seen(G2), await isRemoved(G2)]).toEqual(['under_way', false]);
    // The attachment was withdrawn, so the copy is abandoned.
    await store.transact((tx) => putVolumeWork(tx, ID, 'attach', now));
    expect([await seen(G2), await isRemoved(G2)]).toEqual(['removed', true]);
  });

  it('stays while a call for the resource runs', async () => {
    await change({ destroyOrder: order });
    await store.transact((tx) => putVolumeWork(tx, ID, 'attach', now));
    const claim = { platform: 'default', owner: 's', now, leaseUntil: now + 4_000, limit: 1 };
    await store.claimWork({ ...claim, resourceKind: 'volume' });
    expect([await seen(G2), await isRemoved(G2)]).toEqual(['under_way', false]);
  });

  it('is removed if deletion of the resource was requested, and stays otherwise', async () => {
    expect([await seen(G2), await isRemoved(G2)]).toEqual(['later', false]);
    await change({ destroyOrder: order, deletedAt: now });
    expect([await seen(G2), await isRemoved(G2)]).toEqual(['removed', true]);
  });

  it('is not removed once the row has that name', async () => {
    expect(await seen(G1)).toBe('current');
    expect(await removeOtherAttempt(context, 'volume', { id: 'vol-2', ref: G0 })).toBe('current');
  });
});

it('a delete waits for the other attempts of its resource and removes them', async () => {
  const areClosed = () => store.transact((tx) => areOthersClosed(tx, row, now));
  expect(await areClosed()).toBe(true);
  await store.transact(async (tx) => {
    await supersede(tx, { ...row, resourceKind: 'volume', ownerRef: G0 }, 's', now);
    await tx.attempts.put({
      ...{ resourceId: ID, resourceKind: 'volume', platform: 'default', ref: G2, host: 'b' },
      ...{ openedAt: now, closedAt: null, destroyOrder: order },
    });
  });
  expect([await areClosed(), await isRemoved(G0), await isRemoved(G2)]).toEqual([false, true, true]);
  for (const ref of [G0, G2]) {
    const attempt = await store.read.attempts.byRef(ref);
    if (attempt === null) throw new Error(`${ref} is not known`);
    await store.transact((tx) => tx.attempts.put({ ...attempt, closedAt: now }));
  }
  expect(await areClosed()).toBe(true);
});

describe('a volume that is listed under a later name than its restored row has', () => {
  const listTwice = async () => {
    const sweep = new VolumeSweep(context, () => false);
    for (let round = 0; round < 2; round++)
      await sweep.sweep({
        ...{ items: shown, begunAt: clock.now(), copies: [], leftovers: [] },
        ...{ isTrusted: true, isComplete: true },
        hosts: { answered: 'all', silent: new Set() },
      });
    return store.read.volumes.byId(ID);
  };
  const show = (ref: string, host: string) =>
    shown.set(ref, { ref, host, attachedTo: [], createdAt: now, sizeGb: 10 });

  it('becomes the volume if the earlier one is gone', async () => {
    show(G2, 'b');
    expect(await listTwice()).toMatchObject({ ownerRef: G2, host: 'b' });
    expect(await isRemoved(G2)).toBe(false);
  });

  it('is left alone while the earlier one exists: it is unknown which has the data', async () => {
    show(G1, 'a');
    show(G2, 'b');
    expect(await listTwice()).toMatchObject({ ownerRef: G1, host: 'a' });
    expect([await isRemoved(G1), await isRemoved(G2)]).toEqual([false, false]);
    expect(alarms.listOpen()).toMatchObject([{ kind: 'orphan_volume', subject: G2 }]);
  });

  it('is an alarm and stays if it has no row at all', async () => {
    const ref = `berth-vol-${'2'.repeat(32)}`;
    show(ref, 'a');
    await listTwice();
    expect(alarms.listOpen()).toMatchObject([{ kind: 'orphan_volume', subject: ref }]);
    expect(await isRemoved(ref)).toBe(false);
  });
});
