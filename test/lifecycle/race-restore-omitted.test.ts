import { expect, it } from 'vitest';
import { createAccount } from '../../src/orchestrator/accounts/accounts.ts';
import type { ObservedMachine } from '../../src/orchestrator/model/platform-driver.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { backUp } from '../support/restored.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

const noteOf = (machine: ObservedMachine) => JSON.parse(machine.note ?? '');

it('P6: one listing that leaves a machine out does not end a restore: its id stays 503, and it gets its row when its account is there', async () => {
  await using first = await startTestOrchestrator({
    reconcile: { watchIntervalMs: 3_600_000 },
    changeOffer: (offer) => ({ ...offer, placements: offer.placements.map((at) => ({ ...at, units: 1 })) }),
  });
  // The account, and the machine, are younger than the backup.
  const accountId = `acct-${'0123456789'.repeat(2)}`;
  const restore = await backUp(first);
  const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
  const id = String(body['id']);
  await first.waitFor(id, 'ONLINE');
  let isOmitted = false;
  let listings = 0;
  /** Each is over before the next begins. */
  const listedAgain = async () => {
    const before = listings;
    await until('it was listed again and again', () => listings > before + 5);
  };
  await using restored = await restore({
    reconcile: { watchIntervalMs: 50 },
    wrapDriver: (driver) => ({
      ...driver,
      list: async () => {
        listings++;
        const listing = await driver.list();
        if (listing.answer !== 'listed') return listing;
        const items = listing.items
          .filter(({ ref }) => !(isOmitted && ref === `berth-${id}`))
          .map((machine) =>
            machine.ref === `berth-${id}`
              ? { ...machine, note: JSON.stringify({ ...noteOf(machine), accountId }) }
              : machine,
          );
        return { ...listing, items };
      },
    }),
  });
  expect(await restored.read(`/instances/${id}`)).toBe('503');
  // F5, F7: a listing omits a machine, or a page of it is missing.
  isOmitted = true;
  await listedAgain();
  const isRestoring = (await restored.store.read.marks.get('restored_from')) !== null;
  isOmitted = false;
  await listedAgain();
  const whileNoRow = await restored.read(`/instances/${id}`);
  // Its unit is sold again while it runs.
  const sold = await restored.send('POST', '/instances', instanceRequest()).then(
    () => 'sold',
    (error) => String(error).slice(0, 80),
  );
  await createAccount({ store: restored.store, clock: first.clock, random: systemRandom }, 'late', accountId);
  await until('it is adopted', async () => (await restored.store.read.instances.byId(id)) !== null);
  expect({ isRestoring, whileNoRow, sold }).toEqual({
    isRestoring: true,
    whileNoRow: '503',
    sold: expect.stringContaining('capacity_unavailable'),
  });
});

it('P7: nor does it where all could be restored: the listing of the start left it out, and the next one shows it', async () => {
  await using first = await startTestOrchestrator({
    reconcile: { watchIntervalMs: 3_600_000 },
    changeOffer: (offer) => ({ ...offer, placements: offer.placements.map((at) => ({ ...at, units: 1 })) }),
  });
  const restore = await backUp(first);
  const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
  const id = String(body['id']);
  await first.waitFor(id, 'ONLINE');
  let isOmitted = true;
  await using restored = await restore({
    reconcile: { watchIntervalMs: 50 },
    wrapDriver: (driver) => ({
      ...driver,
      list: async () => {
        const listing = await driver.list();
        if (listing.answer !== 'listed') return listing;
        return {
          ...listing,
          items: listing.items.filter(({ ref }) => !(isOmitted && ref === `berth-${id}`)),
        };
      },
    }),
  });
  isOmitted = false;
  await until('it is ONLINE', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
  const sold = await restored.send('POST', '/instances', instanceRequest()).then(
    () => 'sold',
    (error) => String(error).slice(0, 200),
  );
  expect(sold).toContain('capacity_unavailable');
});
