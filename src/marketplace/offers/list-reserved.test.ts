import { expect, it } from 'vitest';
import { offerPageSchema, type ReservedOfferQuery, reservedOfferQuerySchema } from '../contract/offer.ts';
import { boardOf, cpu } from './catalogs.fixture.ts';
import { listReservedOffers } from './offer-page.ts';

const market = boardOf([
  { provider: 'provider-a' },
  { provider: 'provider-a', stock: [], changes: { id: 'sold-out', price_per_hour: 1 } },
  { provider: 'provider-b', stock: [], changes: { id: 'l4', gpu_type: 'L4' } },
  { provider: 'provider-b', isWithdrawn: true, stock: [], changes: { id: 'withdrawn' } },
  { provider: 'provider-b', changes: { ...cpu, id: 'resting', maintenance: true } },
]);

async function list(query: ReservedOfferQuery, discount: number | null = null) {
  return offerPageSchema.parse(await listReservedOffers(market, query, discount));
}

it('includes offers that are sold out or in maintenance, and omits withdrawn ones [reserved-sold-out]', async () => {
  const page = await list({ providers: ['provider-a', 'provider-b'] });
  const offers = page.data.flatMap((group) => group.offers);
  expect(offers.map(({ offerId, available, clusters }) => [offerId, available, clusters])).toEqual([
    ['resting', false, ['eu-one', 'us-two']],
    ['sold-out', false, ['eu-one', 'us-two']],
    ['offer-0', true, ['eu-one']],
    ['l4', false, ['eu-one', 'us-two']],
  ]);
  expect(page).toMatchObject({ total: 3, page: 1, limit: 3, totalPages: 1 });
});

it('prices a group by the offers in stock [reserved-prices]', async () => {
  const { data } = await list({ sortBy: 'gpuType' });
  expect(
    data.map(({ gpuType, lowestPrice, totalAvailable }) => [gpuType, lowestPrice, totalAvailable]),
  ).toEqual([
    ['CPU', undefined, 0],
    ['H100_SXM', 2, 1],
    ['L4', undefined, 0],
  ]);
});

it.each(['asc', 'desc'] as const)('puts sold-out groups without a price last: %s', async (sortOrder) => {
  const { data } = await list({ sortBy: 'lowestPrice', sortOrder });
  expect(data.map(({ gpuType }) => gpuType)).toEqual(['H100_SXM', 'CPU', 'L4']);
  expect(data[1]).not.toHaveProperty('averagePrice');
});

it('shows the listed providers only, with discounts for a team [reserved-listed-providers]', async () => {
  const page = await list({ providers: ['provider-b', 'provider-b'], computeType: 'gpu' }, 10);
  expect(page.data).toMatchObject([{ gpuType: 'L4', offers: [{ hasDiscount: true, discountedPrice: 1.8 }] }]);
  expect(await list({ limit: 1, page: 2 })).toMatchObject({ total: 3, limit: 1, page: 2, totalPages: 3 });
});

it.each([['provider-z'], [''], ['provider-a,,provider-b']])(
  'refuses providers=%s [reserved-providers-refused]',
  async (providers) => {
    const query = reservedOfferQuerySchema.parse({ providers });
    await expect(list(query)).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining('of provider-a, provider-b'),
    });
  },
);

it('accepts blanks in a list of ids', () => {
  expect(reservedOfferQuerySchema.parse({ providers: 'provider-a, provider-b' }).providers).toEqual([
    'provider-a',
    'provider-b',
  ]);
});
