import { describe, expect, it } from 'vitest';
import { account, instance, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Step } from '../model/platform-driver.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import { afterCreate } from '../steps/adopt-or-create.ts';
import type { ReconcileContext } from './context.ts';
import { afterObservation, markMachinesVisible, markVolumeVisible, mayAppearForMs } from './visibility.ts';

/** Includes the permitted difference between the clocks of two servers. */
const VISIBLE_MS = 240_000;
const MARGIN_MS = 5_000;
const NOW = 2_000;
const context = {
  clock: new VirtualClock(NOW),
  driver: { manifest: { createVisibleWithinMs: VISIBLE_MS - MARGIN_MS } },
  options: { leaseMs: 4 * MARGIN_MS },
} as unknown as ReconcileContext;

const failed = (code: 'capacity' | 'boot_failed' | 'conflict', sideEffect: 'none' | 'possible' | 'certain') =>
  ({ outcome: 'failed', detail: 'd', code, sideEffect }) as const satisfies Step<never>;

describe('after an attempt to create', () => {
  it.each([
    ['that was refused for good, nothing is out', failed('capacity', 'none'), null, null],
    ['that left something behind, it may turn up', failed('boot_failed', 'certain'), null, CREATE_IS_OPEN],
    ['that may have made something, it may turn up', failed('capacity', 'possible'), null, CREATE_IS_OPEN],
    ['that is sent again, it is open', failed('conflict', 'none'), null, CREATE_IS_OPEN],
    ['that goes on, it is open', { outcome: 'pending', cookie: 'c', pollAfterMs: 1 }, null, CREATE_IS_OPEN],
    ['that is done, it may be missing from now on', { outcome: 'done', value: null }, null, NOW],
    [
      'whose call with a cookie is refused, nothing is known of those before it [refused-call-with-cookie]',
      failed('capacity', 'none'),
      'c',
      CREATE_IS_OPEN,
    ],
    ['that found it being built, the create is still open', { outcome: 'building' }, null, CREATE_IS_OPEN],
  ] as const)('%s', (_name, attempted, cookie, expected) => {
    expect(afterCreate(attempted, { cookie }, NOW)(CREATE_IS_OPEN)).toBe(expected);
  });
});

describe('after an observation by another step', () => {
  it.each([
    ['what is shown needs no waiting', 'observed', NOW, null],
    ['a create that was open was sent before it', 'gone', CREATE_IS_OPEN, 500],
    ['a create that was answered in a time which has not come yet was answered before it', 'gone', 900, 500],
    ['what was answered before stays so', 'gone', 100, 100],
    ['what was shown once stays so', 'gone', null, null],
  ] as const)('%s', (_name, answer, known, expected) => {
    expect(afterObservation({ answer, observedAt: 500 })(known)).toBe(expected);
  });
});

describe('an observation that answers gone', () => {
  it.each([
    ['proves it of what the platform has shown', null, 0, 0],
    ['proves nothing before the platform must show it', 1_500, NOW, VISIBLE_MS - 500],
    ['proves it after that', -VISIBLE_MS, NOW, 0],
    [
      'and took long proves nothing if it began before that [listing-began-before-visibility]',
      -VISIBLE_MS,
      -1,
      1,
    ],
    ['is made again no later than that, whatever the clock says', 9_000_000, NOW, VISIBLE_MS],
  ])('%s', (_name, createOpenUntil, observedAt, expected) => {
    expect(mayAppearForMs(context, createOpenUntil, observedAt)).toBe(expected);
  });
});

describe('once a listing has shown it', () => {
  /** Stores a machine and a volume that were made at `NOW`, and marks them as listed. Returns their `createOpenUntil`. */
  async function listed(createOpenUntil: number | null): Promise<(number | null | undefined)[]> {
    const store = await openTestStore();
    const record = volume('vol-a', { createOpenUntil });
    await store.transact(async (tx) => {
      await tx.credentials.insertAccount(account);
      await tx.instances.insert(instance('a', { createOpenUntil }));
      await tx.volumes.insert(record);
    });
    await markMachinesVisible({ ...context, store }, ['a']);
    await markVolumeVisible({ ...context, store }, record);
    const { instances, volumes } = store.read;
    return [(await instances.byId('a'))?.createOpenUntil, (await volumes.byId('vol-a'))?.createOpenUntil];
  }

  it('a read that began before proves nothing, and a later one proves it gone [read-begun-before-listing]', async () => {
    for (const known of await listed(NOW)) {
      expect(mayAppearForMs(context, known ?? null, NOW - 1)).toBeGreaterThan(0);
      expect(mayAppearForMs(context, known ?? null, NOW + MARGIN_MS)).toBe(0);
    }
  });

  it.each([
    ['an open create stays open', CREATE_IS_OPEN],
    ['what was shown before stays so', null],
    ['an earlier end of its create stays', NOW - VISIBLE_MS],
  ])('%s', async (_name, known) => {
    expect(await listed(known)).toEqual([known, known]);
  });
});
