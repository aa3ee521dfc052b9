import { expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/clocks/virtual-clock.ts';
import type { Store } from '../marketplace/model/store.ts';
import type { LeaseRecord } from './lease.ts';
import { LeaseHolder } from './lease-holder.ts';

const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

it('is begun anew by a process that stood still for longer than it lasts', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 10, 1));
  const reported: boolean[] = [];
  const claim = async (name: string, holder: string, now: number, ttlMs: number): Promise<LeaseRecord> => ({
    name,
    holder,
    token: 1,
    until: now + ttlMs,
  });
  const store = {
    transact: (body: (tx: unknown) => unknown) => body({ leases: { claim, release: async () => undefined } }),
  } as unknown as Store;
  const lease = new LeaseHolder(
    { store, clock, log },
    { name: 'provider:x', holder: 'me', changed: (held) => void reported.push(held !== null) },
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  lease.start();
  await settle();
  expect(reported).toEqual([true]);
  clock.step(20_000);
  clock.fire();
  await settle();
  expect(reported).toEqual([true]);
  clock.step(60_000);
  clock.fire();
  await settle();
  expect(reported).toEqual([true, false, true]);
  expect(lease.isHeld).toBe(true);
  await lease.stop();
});
