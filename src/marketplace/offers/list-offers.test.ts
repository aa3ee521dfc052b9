import { describe, expect, it } from 'vitest';
import { type OfferQuery, offerPageSchema, offerQuerySchema } from '../contract/offer.ts';
import { profileOf } from '../providers/offer.fixture.ts';
import { boardOf, cpu, offersOf, type Sold } from './catalogs.fixture.ts';
import { listOffers } from './offer-page.ts';

const h100 = { gpu_type: 'NVIDIA H100 SXM' };
const a100 = { gpu_type: 'NVIDIA A100 PCIe', price_per_hour: 1.2 };
const l4 = { gpu_type: 'NVIDIA L4', price_per_hour: 0.4 };

async function list(sold: readonly Sold[], query: OfferQuery = {}, discount: number | null = null) {
  const page = await listOffers(boardOf(sold).board, query, discount);
  return offerPageSchema.parse(page);
}

const typesOf = ({ data }: { data: { gpuType: string }[] }) => data.map(({ gpuType }) => gpuType);

describe('an offer', () => {
  it('has every field that M: gives it [offer-fields]', async () => {
    const page = await list([{ stock: ['eu-one', 'us-two'] }]);
    expect(page.data[0]?.offers).toEqual([
      {
        provider: 'provider-x',
        offerId: 'offer-0',
        name: '1x H100 SXM',
        description: '',
        vcpus: 24,
        memory: 200,
        storage: 750,
        gpuCount: 1,
        gpu_memory: 80,
        price: 2,
        available: true,
        clusters: ['eu-one', 'us-two'],
        maintenance: false,
        os_options: ['ubuntu-24.04-cuda-13.0', 'ubuntu-24.04'],
        interconnectType: 'SXM5',
        interconnectDescription: 'GPUs on one SXM5 board with NVLink',
        instanceType: 'DEDICATED',
        supportsCloudInit: true,
        extras: { deployment_type: 'vm', networking_type: 'public' },
        pauseUnsupportedReason: null,
      },
    ]);
  });

  it('names the regions where it is in stock, and its one region [offer-regions]', async () => {
    const page = await list([{ stock: ['us-two'] }]);
    expect(page.data[0]?.offers[0]).toMatchObject({ clusters: ['us-two'], region: 'us-two' });
  });

  it('of type SPOT costs its spot price [spot-price]', async () => {
    const page = await list([{ changes: { instance_type: 'SPOT', spot_price_per_hour: 0.75 } }]);
    expect(page.data[0]).toMatchObject({ lowestPrice: 0.75, offers: [{ price: 0.75, spot_price: 0.75 }] });
  });

  it.each([
    ['SPOT', 'SPOT', 'vm'],
    ['DEDICATED', 'DEDICATED', 'vm'],
    ['BARE_METAL', 'DEDICATED', 'baremetal'],
    ['CLUSTER', 'CLUSTER', 'cluster'],
  ])(
    'of type %s is shown as %s, and deployed as %s [offer-type-shown]',
    async (instance_type, instanceType, deployment_type) => {
      const extras = { networking_type: 'nat', deployment_type: 'other', cpu: 'EPYC', nvlink: true };
      const page = await list([{ changes: { instance_type, extras } }]);
      expect(page.data[0]?.offers[0]).toMatchObject({ instanceType });
      expect(page.data[0]?.offers[0]?.extras).toEqual({
        deployment_type,
        networking_type: 'nat',
        cpu: 'EPYC',
      });
    },
  );

  it('has nvlink only where the profile says so [offer-nvlink]', async () => {
    const profiles = [profileOf([{ offers: ['bridged'], nvlink: true }])];
    const sold = [{ changes: { id: 'bridged' } }, { changes: { id: 'plain', extras: { nvlink: true } } }];
    const page = await listOffers(boardOf(sold, { profiles }).board, {}, null);
    expect(page.data[0]?.offers.map(({ offerId, nvlink }) => [offerId, nvlink])).toEqual([
      ['bridged', true],
      ['plain', undefined],
    ]);
  });

  it('says why its instances cannot be stopped where it is in stock [offer-stop-reason]', async () => {
    const rules = [{ regions: ['us-two'], no_stop: 'Not in us-two.' }];
    const sold = [
      { stock: ['us-two'], changes: { id: 'a' } },
      { stock: ['us-two', 'eu-one'], changes: { id: 'b' } },
      { changes: { id: 'c', extras: {} } },
    ];
    const page = await listOffers(boardOf(sold, { profiles: [profileOf(rules)] }).board, {}, null);
    expect(page.data[0]?.offers.map(({ pauseUnsupportedReason }) => pauseUnsupportedReason)).toEqual([
      'Not in us-two.',
      null,
      expect.stringContaining('does not announce the price of a stopped instance'),
    ]);
  });
});

describe('discounts', () => {
  it('are not shown without a login [discounts-hidden-without-login]', async () => {
    const [offer] = (await list([{}])).data[0]?.offers ?? [];
    for (const field of ['originalPrice', 'discountedPrice', 'discountPercentage', 'hasDiscount'])
      expect(offer).not.toHaveProperty(field);
  });

  it.each([
    [15, { price: 1.999999, originalPrice: 1.999999, discountedPrice: 1.699999, hasDiscount: true }],
    [0, { price: 1.999999, originalPrice: 1.999999, discountedPrice: 1.999999, hasDiscount: false }],
  ])('of %i per cent are told to the team [discounts-for-team]', async (discountPercentage, expected) => {
    const page = await list([{ changes: { price_per_hour: 1.999999 } }], {}, discountPercentage);
    expect(page.data[0]?.offers[0]).toMatchObject({ ...expected, discountPercentage });
    expect(page.data[0]?.lowestPrice).toBe(1.999999);
  });

  it('of one caller are not seen by the next', async () => {
    const { board } = boardOf([{}]);
    await listOffers(board, {}, 50);
    expect((await listOffers(board, {}, null)).data[0]?.offers[0]).not.toHaveProperty('discountedPrice');
  });
});

describe('a group', () => {
  it('has the prices, the stock and the providers of the offers in stock [group-prices-and-stock]', async () => {
    const page = await list([
      { provider: 'provider-b', stock: ['eu-one', 'us-two'], changes: { price_per_hour: 3 } },
      { provider: 'provider-a', changes: { price_per_hour: 1 } },
      { provider: 'provider-a', changes: { id: 'other', price_per_hour: 1.000001 } },
      { provider: 'provider-c', stock: [], changes: { price_per_hour: 0.1 } },
    ]);
    expect(page).toMatchObject({ total: 1, page: 1, limit: 10, totalPages: 1 });
    expect(page.data[0]).toMatchObject({
      gpuType: 'H100_SXM',
      gpuModel: 'H100 SXM',
      baseGpuType: 'H100',
      displayName: 'H100 SXM',
      totalAvailable: 4,
      lowestPrice: 1,
      highestPrice: 3,
      averagePrice: 1.666667,
      providers: ['provider-b', 'provider-a'],
    });
    expect(page.data[0]?.offers.map(({ price }) => price)).toEqual([1, 1.000001, 3]);
  });

  it('names the interconnects that it comes with [group-interconnects]', async () => {
    const page = await list([
      {},
      { changes: { id: 'b', extras: { interconnect: 'InfiniBand' } } },
      { changes: { id: 'c', extras: { interconnect: 'InfiniBand' } } },
      { changes: { ...l4, id: 'd' } },
    ]);
    expect(
      page.data.map(({ interconnectVariants, hasMultipleVariants }) => [
        interconnectVariants,
        hasMultipleVariants,
      ]),
    ).toEqual([
      [['InfiniBand', 'SXM5'], true],
      [[], false],
    ]);
  });

  it('is omitted when all its offers are sold out, in maintenance or withdrawn [group-sold-out]', async () => {
    const page = await list([
      { stock: [] },
      { changes: { ...a100, id: 'b', maintenance: true } },
      { isWithdrawn: true, changes: { ...l4, id: 'c' } },
    ]);
    expect(page).toEqual({ data: [], total: 0, page: 1, limit: 10, totalPages: 0 });
  });

  it('of CPU offers is one row, without images that need a GPU [cpu-offers-one-row]', async () => {
    const page = await list([
      { provider: 'provider-a', changes: cpu },
      { provider: 'provider-b', changes: { ...cpu, instance_type: 'SPOT' } },
      { provider: 'provider-c' },
    ]);
    const [row, ...others] = page.data.filter(({ gpuType }) => gpuType === 'CPU');
    expect(others).toEqual([]);
    expect(row).toMatchObject({
      displayName: 'CPU NODE',
      gpuModel: '',
      providers: ['provider-a', 'provider-b'],
      interconnectVariants: [],
      hasMultipleVariants: false,
    });
    for (const offer of row?.offers ?? [])
      expect(offer).toMatchObject({ gpuCount: 0, gpu_memory: 0, os_options: ['ubuntu-24.04'] });
  });
});

describe('a query', () => {
  const sold: Sold[] = [
    { changes: { ...h100, id: 'h' } },
    { changes: { ...a100, id: 'a', instance_type: 'SPOT' } },
    { stock: ['eu-one', 'us-two'], changes: { ...l4, id: 'l' } },
    { changes: { ...cpu, id: 'c', instance_type: 'BARE_METAL' } },
  ];

  it.each<[OfferQuery, string[]]>([
    [{ search: 'h100' }, ['H100_SXM']],
    [{ search: ' CPU ' }, ['CPU']],
    [{ search: 'node' }, ['CPU']],
    [{ search: 'a100_pcie' }, ['A100_PCIE']],
    [{ search: '100' }, ['A100_PCIE', 'H100_SXM']],
    [{ search: '.*' }, []],
    [{ computeType: 'cpu' }, ['CPU']],
    [{ computeType: 'gpu' }, ['A100_PCIE', 'H100_SXM', 'L4']],
    [{ instanceType: 'SPOT' }, ['A100_PCIE']],
    [{ instanceType: 'DEDICATED' }, ['CPU', 'H100_SXM', 'L4']],
    [{ instanceType: 'CLUSTER' }, []],
    [{ sortBy: 'lowestPrice' }, ['CPU', 'L4', 'A100_PCIE', 'H100_SXM']],
    [{ sortBy: 'lowestPrice', sortOrder: 'desc' }, ['H100_SXM', 'A100_PCIE', 'L4', 'CPU']],
    [{ sortBy: 'totalAvailable', sortOrder: 'desc' }, ['L4', 'A100_PCIE', 'CPU', 'H100_SXM']],
    [{ sortBy: 'displayName', sortOrder: 'desc' }, ['L4', 'H100_SXM', 'CPU', 'A100_PCIE']],
    [{ sortBy: 'gpuType' }, ['A100_PCIE', 'CPU', 'H100_SXM', 'L4']],
    [{ sortBy: 'gpuType', page: 2, limit: 3 }, ['L4']],
    [{ page: 3, limit: 3 }, []],
  ])('as %j gives %j [offer-query]', async (query, types) => {
    expect(typesOf(await list(sold, query))).toEqual(types);
  });

  it('counts the matches in pages [offer-pages]', async () => {
    expect(await list(sold, { page: 2, limit: 3 })).toMatchObject({
      total: 4,
      page: 2,
      limit: 3,
      totalPages: 2,
    });
  });

  it('narrows the offers of a group, and its prices with them', async () => {
    const page = await list([{}, { changes: { id: 'spot', instance_type: 'SPOT', price_per_hour: 1 } }], {
      instanceType: 'DEDICATED',
    });
    expect(page.data).toMatchObject([
      { lowestPrice: 2, totalAvailable: 1, offers: [{ offerId: 'offer-0' }] },
    ]);
  });

  it.each([
    { page: '0' },
    { page: '-1' },
    { page: '1.5' },
    { page: 'x' },
    { limit: '101' },
    { limit: '' },
    { sortBy: 'price' },
    { sortOrder: 'up' },
    { instanceType: 'huge' },
    { computeType: 'tpu' },
  ])('as %j is refused', (query) => {
    expect(offerQuerySchema.safeParse(query).success).toBe(false);
  });

  it('takes an instance type in any case [instance-type-any-case]', () => {
    expect(offerQuerySchema.parse({ instanceType: 'Spot', page: '2', limit: '100' })).toEqual({
      instanceType: 'SPOT',
      page: 2,
      limit: 100,
    });
  });
});

describe('popularity', () => {
  const sold = [
    { changes: { ...h100, id: 'h' } },
    { changes: { ...a100, id: 'a' } },
    { changes: { ...l4, id: 'l' } },
  ];
  const popular = [
    { gpuType: 'L4', count: 9 },
    { gpuType: 'H100_SXM', count: 4 },
  ];
  const ranked = (page: { data: { gpuType: string; popularity: number }[] }) =>
    page.data.map(({ gpuType, popularity }) => [gpuType, popularity]);

  it('is a rank, and the order of the page [offer-popularity]', async () => {
    const { board, counts } = boardOf(sold);
    counts.answer = async () => popular;
    expect(ranked(await listOffers(board, {}, null))).toEqual([
      ['L4', 1],
      ['H100_SXM', 2],
      ['A100_PCIE', 3],
    ]);
  });

  it('is counted at intervals, not for each request', async () => {
    const { board, counts, clock } = boardOf(sold);
    for (let request = 0; request < 5; request++) await listOffers(board, {}, null);
    expect(counts.asked).toBe(1);
    counts.answer = async () => popular;
    await clock.advance(300_000);
    await board.ranks();
    await clock.advance(0);
    expect((await board.ranks())('L4')).toBe(1);
    expect(counts.asked).toBe(2);
  });

  it('stays as it was while the database cannot answer', async () => {
    const { board, counts, clock } = boardOf(sold);
    counts.answer = async () => popular;
    await board.ranks();
    counts.answer = () => Promise.reject(new Error('down'));
    await clock.advance(300_000);
    await board.ranks();
    await clock.advance(0);
    expect((await board.ranks())('H100_SXM')).toBe(2);
  });
});

describe('a catalog', () => {
  it('that changes is shown at once', async () => {
    const { board, put } = boardOf([{ changes: h100 }]);
    expect(typesOf(await listOffers(board, {}, null))).toEqual(['H100_SXM']);
    put('provider-x', offersOf(profileOf(), [{ changes: l4 }]));
    expect(typesOf(await listOffers(board, {}, null))).toEqual(['L4']);
  });

  it('that grows old gets a note and is later hidden; the others stay [catalog-grows-old]', async () => {
    const { board, clock, catalogs } = boardOf([
      { provider: 'provider-a' },
      { provider: 'provider-b', changes: l4 },
    ]);
    const refreshAfter = async (ms: number) => {
      await clock.advance(ms);
      const fresh = catalogs.get('provider-b');
      if (fresh !== undefined) fresh.refreshedAt = clock.now();
      const { data } = await listOffers(board, { sortBy: 'gpuType' }, null);
      return data.flatMap(({ offers }) => offers.map(({ provider, note }) => [provider, note]));
    };
    expect(await refreshAfter(90_000)).toEqual([
      ['provider-a', undefined],
      ['provider-b', undefined],
    ]);
    expect(await refreshAfter(1)).toEqual([
      ['provider-a', expect.stringContaining('has not answered since 2026-11-21T00:00:00.000Z')],
      ['provider-b', undefined],
    ]);
    expect(await refreshAfter(600_000)).toEqual([['provider-b', undefined]]);
  });

  it('that was never read shows nothing', async () => {
    const { board, catalogs } = boardOf([{}]);
    const catalog = catalogs.get('provider-x');
    if (catalog !== undefined) catalog.refreshedAt = null;
    expect((await listOffers(board, {}, null)).data).toEqual([]);
  });
});
