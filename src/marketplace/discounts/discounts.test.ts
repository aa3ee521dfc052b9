import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { openBooks } from '../ledger/ledger.fixture.ts';
import { OperatorError } from '../model/own-rows.ts';
import { assignDiscount, endDiscount } from './discounts.ts';

it('assigns a discount and ends it once', async () => {
  const books = await openBooks();
  const startsAt = books.clock.now();
  const { id } = await assignDiscount(books.deps, { teamId, percentage: 50 });
  await books.clock.advance(1_000);
  await endDiscount(books.deps, id);
  await books.clock.advance(1_000);
  await endDiscount(books.deps, id);
  expect(await books.store.read.discounts.ofTeam(teamId)).toEqual([
    { id, teamId, source: 'admin', percentage: 50, startsAt, endsAt: startsAt + 1_000 },
  ]);
  const later = await assignDiscount(books.deps, { teamId, percentage: 5, startsAt: startsAt + DAY_MS });
  expect((await endDiscount(books.deps, later.id)).endsAt).toBe(startsAt + DAY_MS);
});

it('refuses an invalid discount [discount-refused]', async () => {
  const books = await openBooks();
  const now = books.clock.now();
  for (const percentage of [4, 51, 7.5, Number.NaN])
    await expect(assignDiscount(books.deps, { teamId, percentage })).rejects.toThrow(/5 to 50/);
  const wrong = { teamId, percentage: 10 };
  await expect(assignDiscount(books.deps, { ...wrong, startsAt: now - 1 })).rejects.toThrow(/now or later/);
  await expect(assignDiscount(books.deps, { ...wrong, endsAt: now })).rejects.toThrow(
    /must end after its start/,
  );
  await expect(assignDiscount(books.deps, { ...wrong, teamId: 'team-9' })).rejects.toThrow(OperatorError);
  await expect(endDiscount(books.deps, 'disc-9')).rejects.toThrow(/no discount "disc-9"/);
});
