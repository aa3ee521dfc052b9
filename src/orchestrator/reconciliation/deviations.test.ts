import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { account, anOrder, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Leftover } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { Sightings } from '../platform/sightings.ts';
import { Deviations } from './deviations.ts';

const KEPT_MS = 3_600_000;
const ID = `inst-${'1'.repeat(32)}`;
const FIRST = `berth-${ID}`;
const SECOND = `${FIRST}-g1`;
const PARTS = 'port berth-inst-1 (6f2c), floating IP 203.0.113.7 (91aa)';
const noteOf = (installation: string) => JSON.stringify({ installation, id: ID });

let clock: VirtualClock;
let store: Store;
beforeEach(async () => {
  clock = new VirtualClock(Date.UTC(2026, 10, 21));
  store = await openTestStore();
  await store.transact((tx) => tx.credentials.insertAccount(account));
});

interface Setting {
  canStop?: boolean;
  row?: Partial<InstanceRecord>;
}

async function setUp({ canStop = true, row }: Setting = {}) {
  const updatedAt = clock.now() - 1;
  if (row !== undefined)
    await store.transact((tx) => tx.instances.insert(instance(ID, { updatedAt, ...row })));
  const alarms = unstoredAlarms(clock);
  const options = {
    callTimeoutMs: 1_000,
    leaseMs: 4_000,
    restoreDoubtMs: 600_000,
    keepDisksMs: KEPT_MS,
  };
  const sightings = new Sightings({ store, clock, platform: 'default', options });
  const driver = { manifest: { keepsNotes: true, stop: canStop } };
  const context = {
    ...{ driver, clock, store, alarms, sightings, options, platform: 'default', installationId: 'here' },
    ...{ otherPlatforms: new Set(), log: silentLog },
  } as unknown as ReconcileContext;
  const deviations = new Deviations(context, 'instance');
  return {
    alarms: () => alarms.listOpen().map(({ kind, subject, text }) => ({ kind, subject, text })),
    workOf: async (id: string) => (await store.read.work.of(id))?.kind,
    searchedUntil: async () => {
      for (const kind of ['instance', 'volume', 'instance', 'volume'] as const)
        await sightings.compared(kind, {
          begunAt: clock.now(),
          hosts: { answered: 'all', silent: new Set() },
          isComplete: true,
        });
      return sightings.searchedUntil;
    },
    /** One listing that shows these parts, and no machine. */
    listing: async (...leftovers: Leftover[]) => {
      await deviations.sweep({
        ...{
          items: new Map(),
          copies: [],
          leftovers,
          begunAt: clock.now(),
          isTrusted: true,
          isComplete: true,
        },
        hosts: { answered: 'all', silent: new Set() },
      });
      await clock.advance(1);
    },
  };
}

const left = (changes: Partial<Leftover> = {}): Leftover => ({
  ref: FIRST,
  host: 'az1',
  detail: PARTS,
  ...changes,
});

describe('parts of a machine that is missing from the platform', () => {
  it('raise an alarm that names them and their place, after two listings and until they are gone', async () => {
    const { listing, alarms } = await setUp({ row: { status: 'ONLINE', ownerRef: FIRST } });
    await listing(left());
    expect(alarms()).toEqual([]);
    await listing(left());
    expect(alarms()).toMatchObject([
      { kind: 'leftover', subject: FIRST, text: expect.stringContaining(`(${PARTS}, on az1)`) },
    ]);
    await listing();
    expect(alarms()).toEqual([]);
  });

  it('are removed under the order of their instance', async () => {
    const { listing, alarms, workOf } = await setUp({
      row: { status: 'DESTROYED', ownerRef: FIRST, destroyOrder: anOrder },
    });
    await listing(left());
    expect(await workOf(ID)).toBeUndefined();
    await listing(left());
    expect([await workOf(ID), alarms()]).toEqual(['destroy', []]);
  });

  it('stay while the disks of their instance are kept, and its row with its order does [leftover-kept]', async () => {
    const destroyOrder = { ...anOrder, at: clock.now(), keepsDisks: true } as const;
    const { listing, alarms, workOf, searchedUntil } = await setUp({
      row: { status: 'DESTROYED', ownerRef: FIRST, destroyOrder },
    });
    await listing(left());
    await listing(left());
    expect([await workOf(ID), alarms()]).toEqual([undefined, []]);
    expect(await searchedUntil()).toBeNull();
    await clock.advance(KEPT_MS);
    await listing(left());
    expect(await workOf(ID)).toBe('destroy');
    await listing();
    expect(await searchedUntil()).toBe(clock.now());
  });

  it('are removed at once where the platform cannot switch a machine off, which keeps no disks', async () => {
    const destroyOrder = { ...anOrder, at: clock.now(), keepsDisks: true } as const;
    const row = { status: 'DESTROYED', ownerRef: FIRST, destroyOrder } as const;
    const { listing, workOf } = await setUp({ row, canStop: false });
    await listing(left());
    await listing(left());
    expect(await workOf(ID)).toBe('destroy');
  });

  it('are removed under the order of a superseded attempt of a live instance', async () => {
    const { listing, alarms, workOf } = await setUp({ row: { status: 'ONLINE', ownerRef: SECOND } });
    await listing(left());
    await listing(left());
    expect([await workOf(FIRST), await workOf(ID), alarms()]).toEqual(['destroy', undefined, []]);
    expect(await store.read.attempts.byRef(FIRST)).toMatchObject({
      closedAt: null,
      destroyOrder: { reason: 'failed_create' },
    });
  });

  it('are removed under the order of an attempt whose instance has no row any more', async () => {
    const { listing, alarms, workOf } = await setUp();
    await store.transact((tx) =>
      tx.attempts.put({
        ...{ resourceId: ID, resourceKind: 'instance', platform: 'default', ref: FIRST, host: null },
        ...{ openedAt: 1, closedAt: 2, destroyOrder: anOrder },
      }),
    );
    await listing(left());
    await listing(left());
    expect([await workOf(FIRST), alarms()]).toEqual(['destroy', []]);
  });
});

it.each([
  ['of this installation are an alarm', 'here', [{ kind: 'leftover', subject: FIRST }]],
  ['of another installation are not', 'elsewhere', []],
])('parts that nothing owns and %s', async (_what, installation, expected) => {
  const { listing, alarms } = await setUp();
  for (let seen = 0; seen < 2; seen++) await listing(left({ note: noteOf(installation) }));
  expect(alarms()).toMatchObject(expected);
});
