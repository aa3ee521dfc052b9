import { describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { HeldClaim } from '../model/claims.ts';
import type { Inventory } from '../model/inventory.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import type { Store } from '../model/store.ts';
import { PlatformInventory } from './inventory.ts';

const MINUTE_MS = 60_000;
const machine: ObservedMachine = { ref: 'berth-a', power: 'running', createdAt: 0 };
const listed = new Map([[machine.ref, machine]]);
const claim: HeldClaim = {
  ownerRef: machine.ref,
  platform: 'east',
  status: 'ONLINE',
  isKept: false,
  offerId: 'offer',
  region: 'here',
};
const failed: HeldClaim = { ...claim, status: 'ERROR' };
const kept: HeldClaim = { ...failed, isKept: true };
const elsewhere: HeldClaim = { ...claim, ownerRef: 'berth-b', platform: 'west' };
const free = (units: number) => ({ offerId: 'offer', datacenter: 'dc', units });

/** A count of one offer in one region. `claims`: the claims before and after the count. */
function counting(answer: unknown, claims: readonly HeldClaim[][] = [[], []]) {
  const clock = new VirtualClock();
  const warnings: object[] = [];
  let asked = 0;
  const driver = { inventory: async () => answer as Inventory };
  const inventory = new PlatformInventory({
    platform: 'east',
    driver,
    store: {
      read: { claims: { held: async () => claims[asked++ % 2] }, cordons: { list: async () => [] } },
    } as unknown as Store,
    catalog: {
      regions: new Map([['here', { datacenter: 'dc' }]]),
      offers: new Map([
        ['offer', { platform: 'east', onStop: 'release' }],
        ['holding', { platform: 'east', onStop: 'hold' }],
        ['western', { platform: 'west' }],
      ]),
    } as unknown as Catalog,
    clock,
    alarms: unstoredAlarms(clock),
    log: { ...silentLog, error: (fields) => void warnings.push(fields) },
    options: { callTimeoutMs: 1_000 },
  });
  return { clock, driver, inventory, warnings, capacity: () => inventory.capacity('offer', 'here') };
}

describe('the units that can be sold', () => {
  const counted = (units: number, refs?: string[]) => ({
    answer: 'counted',
    free: [free(units)],
    ...(refs !== undefined && { counted: refs }),
  });

  it.each<[string, object, HeldClaim[][], number]>([
    ['are the free ones and those of the machines that are listed', counted(1), [[claim], [claim]], 2],
    [
      'are only the free ones if the machine may be gone at the time of the count',
      counted(1),
      [[claim], [{ ...claim, status: 'DESTROYING' }]],
      1,
    ],
    [
      'include a failed machine that is kept for the operator [inventory-kept]',
      counted(1),
      [[kept], [kept]],
      2,
    ],
    ['are only the free ones where a failed machine may be gone', counted(1), [[failed], [failed]], 1],
    ['are only the free ones where its claim is released by then', counted(1), [[claim], []], 1],
    ['include a machine being destroyed that the count names', counted(1, ['berth-a']), [[claim], []], 2],
    ['are without one that the count does not name', counted(1, []), [[claim], [claim]], 1],
  ])('%s', async (_what, answer, claims, units) => {
    const { inventory, capacity } = counting(answer, claims);
    await inventory.refresh(listed);
    expect(capacity()).toBe(units);
  });

  it('include a machine that is not listed because its host does not answer', async () => {
    const { inventory, capacity } = counting(counted(1), [[claim], [claim]]);
    await inventory.refresh(new Map(), new Set([machine.ref]));
    expect(capacity()).toBe(2);
    await inventory.refresh(new Map());
    expect(capacity()).toBe(1);
  });

  it('include a machine on a silent host when the count names those of the other hosts', async () => {
    const { inventory, capacity } = counting(counted(1, []), [[claim], [claim]]);
    await inventory.refresh(new Map(), new Set([machine.ref]));
    expect(capacity()).toBe(2);
  });

  it.each<[string, unknown]>([
    ['names a placement twice', { answer: 'counted', free: [free(0), free(5)] }],
    ['counts less than nothing', { answer: 'counted', free: [free(-1)] }],
    ['counts no number', { answer: 'counted', free: [free(Number.NaN)] }],
    ['counts halves', { answer: 'counted', free: [free(0.5)] }],
    ['has no form', { answer: 'perhaps', free: [free(5)] }],
    ['names its machines as no list', { answer: 'counted', free: [free(5)], counted: 5 }],
    ['is missing', undefined],
  ])('are none after an answer that %s, with a warning that gives the reason', async (_what, answer) => {
    const { inventory, capacity, warnings } = counting(answer);
    await inventory.refresh(new Map());
    expect(capacity()).toBe(0);
    expect(warnings).toEqual([expect.objectContaining({ reason: expect.any(String) })]);
  });

  it.each([
    ['as long as it says which machines it counts', ['berth-a']],
    ['where it does not', undefined],
  ])('are not reduced by a unit of the offer on another platform, %s', async (_what, refs) => {
    const { inventory, capacity } = counting(counted(2, refs), [
      [claim, elsewhere],
      [claim, elsewhere],
    ]);
    await inventory.refresh(listed);
    expect(capacity()).toBe(4);
  });

  it('are not increased by a unit on another platform that shows the same machines', async () => {
    const { inventory, capacity } = counting(counted(2, ['berth-a', 'berth-b']), [
      [claim, elsewhere],
      [claim, elsewhere],
    ]);
    await inventory.refresh(listed);
    expect(capacity()).toBe(4);
  });

  it('are not increased by a unit given back on another platform', async () => {
    const leaving: HeldClaim = { ...elsewhere, status: 'DESTROYING' };
    const { inventory, capacity } = counting(counted(2), [[leaving], [leaving]]);
    await inventory.refresh(new Map());
    expect(capacity()).toBe(2);
  });

  it.each([
    ['include a stopped one that holds its unit', 'holding', 2],
    ['are without a stopped one that may have given its unit back', 'offer', 1],
  ])('%s, where the count names no machines', async (_what, offerId, units) => {
    const stopped: HeldClaim = { ...claim, offerId, status: 'STOPPED' };
    const answer = { answer: 'counted', free: [{ ...free(1), offerId }] };
    const { inventory } = counting(answer, [[stopped], [stopped]]);
    await inventory.refresh(new Map([[machine.ref, { ...machine, power: 'stopped' }]]));
    expect(inventory.capacity(offerId, 'here')).toBe(units);
  });

  it('are requested only for offers of the platform, once each', async () => {
    const western = { offerId: 'western', datacenter: 'dc', units: 7 };
    const { inventory } = counting({ answer: 'counted', free: [free(2), western] });
    await inventory.refresh(new Map());
    expect([...inventory.freeUnits]).toEqual([['offer', 2]]);
  });

  it('are shown with what limits them, in clean words, until a count does not name it', async () => {
    const { driver, inventory } = counting({ ...counted(1), limitedBy: ['quota:\ncores 40 of 40'] });
    await inventory.refresh(new Map());
    expect([inventory.limitedBy, inventory.obstacles('offer', 'here')]).toEqual([
      ['quota: cores 40 of 40'],
      [],
    ]);
    const full = { ...free(0), obstacles: ['kvm-1: full'] };
    driver.inventory = async () => ({ ...counted(0), free: [full], limitedBy: ['quota'] }) as Inventory;
    await inventory.refresh(new Map());
    expect(inventory.obstacles('offer', 'here')).toEqual(['kvm-1: full', 'quota']);
    driver.inventory = async () => counted(1) as Inventory;
    await inventory.refresh(new Map());
    expect(inventory.limitedBy).toEqual([]);
  });

  it('are none when a clock that was set back hides the age of the count', async () => {
    const { clock, driver, inventory, capacity } = counting(counted(3));
    await inventory.refresh(new Map());
    expect(capacity()).toBe(3);
    driver.inventory = async () => ({ answer: 'unknown', reason: 'busy' });
    const now = clock.now();
    clock.now = () => now - 60 * MINUTE_MS;
    await inventory.refresh(new Map());
    expect(capacity()).toBe(0);
  });
});
