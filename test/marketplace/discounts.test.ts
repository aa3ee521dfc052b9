import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Offer, OfferPage } from '../../src/marketplace/contract/offer.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { discount } from '../support/rows/marketplace-rows.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const clock = new VirtualClock();
let market: TestMarketplace;
beforeAll(async () => {
  const plain = new PlainProvider(clock);
  market = await startTestMarketplace({ clock, providers: { 'provider-d': { client: plain.client } } });
});
afterAll(() => market[Symbol.asyncDispose]());

async function offerFor(key: string | null): Promise<Partial<Offer>> {
  const { body } = await market.request<OfferPage>('GET', '/api/gpu-offers', { key });
  return body.data.flatMap(({ offers }) => offers).find(({ offerId }) => offerId === 'gpu-1') ?? {};
}

const fields = ['originalPrice', 'discountedPrice', 'discountPercentage', 'hasDiscount'] as const;
const discountIn = (offer: Partial<Offer>) => fields.map((field) => offer[field]);

it('are told to the team that has them, the better one of two, and to no other [discounts-end-to-end]', async () => {
  const { teamId, key } = market.user;
  expect(discountIn(await offerFor(key))).toEqual([2, 2, 0, false]);
  const startsAt = clock.now();
  await market.store.transact(async (tx) => {
    await tx.discounts.insert(discount({ id: 'disc-a', teamId, startsAt, source: 'admin', percentage: 15 }));
    await tx.discounts.insert(discount({ id: 'disc-v', teamId, startsAt, source: 'volume', percentage: 25 }));
  });
  expect(discountIn(await offerFor(key))).toEqual([2, 1.5, 25, true]);
  expect((await offerFor(key)).price).toBe(2);
  const stranger = await market.addUser('stranger@example.com');
  expect(discountIn(await offerFor(stranger.key))).toEqual([2, 2, 0, false]);
  expect(await offerFor(null)).toMatchObject({ price: 2 });
  expect(discountIn(await offerFor(null))).toEqual(fields.map(() => undefined));
});
