import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { volumeRegionSchema } from '../contract/volume.ts';
import { listVolumeRegions } from './locations.ts';
import { openWorld, type World } from './seven-providers.fixture.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const list = (letter: string) => listVolumeRegions(world.deps, { provider: `provider-${letter}` });

/** Leaves only these offers in stock, in these regions. */
function stock(letter: string, inStock: readonly { isGpu: boolean; region: string }[]): void {
  for (const offer of world.provider(letter).catalog.offers.values()) {
    const regions = inStock.filter(({ isGpu }) => isGpu === offer.gpuCount > 0).map(({ region }) => region);
    Object.assign(offer, { inStockRegions: offer.regions.filter((region) => regions.includes(region)) });
  }
}

/** M: Limits, Volume size: regions without their own limits. */
it.each([
  ['a', 'us-dallas', 1, 10_000, 0.000274],
  ['c', 'us-denver', 50, 10_000, 0.000137],
  ['d', 'us-phoenix', 1, 51_200, 0.000096],
  ['e', 'eu-frankfurt', 1, 262_144, 0.00011],
  ['f', 'us-newark', 1, 16_000, 0.000164],
])(
  'provider-%s has sizes and a price in %s [volume-region-sizes]',
  (letter, id, minSizeGb, maxSizeGb, hourlyRatePerGb) => {
    const entry = list(letter).regions.find((region) => region.id === id);
    expect(entry).toMatchObject({ minSizeGb, maxSizeGb, hourlyRatePerGb });
    expect(volumeRegionSchema.strict().parse(entry)).toEqual(entry);
  },
);

it('names clouds for provider-c alone [volume-clouds]', () => {
  for (const letter of ['a', 'c', 'd', 'e', 'f'])
    for (const entry of list(letter).regions) {
      expect('cloudId' in entry).toBe(letter === 'c');
      expect('cloudName' in entry).toBe(letter === 'c');
    }
});

describe('the offers in the region of a volume', () => {
  const gpus = () => list('d').regions.map(({ id, hasGpuOffers }) => [id, hasGpuOffers]);

  it('set hasGpuOffers by region, and hasAnyOffers over all regions [beside-volume-gpus]', () => {
    stock('d', [{ isGpu: true, region: 'ap-tokyo' }]);
    expect(gpus()).toContainEqual(['ap-tokyo', true]);
    expect(gpus().filter(([, hasGpuOffers]) => hasGpuOffers)).toHaveLength(1);
    expect(list('d').hasAnyOffers).toBe(true);
  });

  it('set hasAnyOffers for CPU offers, and clear it where all are sold out [beside-volume-cpus]', () => {
    stock('d', [{ isGpu: false, region: 'us-phoenix' }]);
    expect(gpus().filter(([, hasGpuOffers]) => hasGpuOffers)).toEqual([]);
    expect(list('d').hasAnyOffers).toBe(true);
    for (const offer of world.provider('d').catalog.offers.values())
      Object.assign(offer, { maintenance: true });
    expect(list('d').hasAnyOffers).toBe(false);
    stock('d', []);
    expect(list('d').hasAnyOffers).toBe(false);
    expect(list('d').regions.length).toBeGreaterThan(0);
  });
});
