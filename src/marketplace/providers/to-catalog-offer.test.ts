import { describe, expect, it } from 'vitest';
import { noMarkups } from './markup.ts';
import { configurationOf, gpuTypes, profileOf } from './offer.fixture.ts';
import type { CatalogOffer } from './provider.ts';
import { mistakeOf, toCatalogOffer } from './to-catalog-offer.ts';

function convert(changes: Parameters<typeof configurationOf>[0] = {}, rules: readonly object[] = []) {
  const problems: string[] = [];
  const offer = toCatalogOffer(configurationOf(changes), {
    profile: profileOf(rules),
    gpuTypes,
    markups: noMarkups,
    inStockRegions: ['eu-one'],
    onProblem: (message) => problems.push(message),
  });
  return { offer, problems };
}

it('takes over the offers that a provider publishes', () => {
  expect(convert().offer).toEqual({
    providerId: 'provider-x',
    offerId: 'h100-1x',
    name: '1x H100 SXM',
    description: '',
    instanceType: 'DEDICATED',
    gpuType: 'H100_SXM',
    baseGpuType: 'H100',
    gpuModel: 'H100 SXM',
    displayName: 'H100 SXM',
    interconnectType: 'SXM5',
    interconnectDescription: 'GPUs on one SXM5 board with NVLink',
    vcpus: 24,
    memoryGb: 200,
    storageGb: 750,
    gpuCount: 1,
    gpuMemoryGb: 80,
    providerPriceMicroUsdPerHour: 2_000_000,
    providerStoppedPriceMicroUsdPerHour: 500_000,
    priceMicroUsdPerHour: 2_000_000,
    spotPriceMicroUsdPerHour: null,
    stoppedPriceMicroUsdPerHour: 500_000,
    minimumReservationMinutes: null,
    announcesRestart: true,
    announcesVolumeResize: false,
    regions: ['eu-one', 'us-two'],
    inStockRegions: ['eu-one'],
    osOptions: ['ubuntu-24.04-cuda-13.0', 'ubuntu-24.04'],
    supportsCloudInit: true,
    maintenance: false,
    isNvlink: false,
    extras: { berth: { restart: true, stopped_price_per_hour: 0.5 } },
  } satisfies CatalogOffer);
});

it('prices a spot offer by its spot price, and by no other [spot-offer-price]', () => {
  const spot = { instance_type: 'SPOT', spot_price_per_hour: 0.8 };
  expect(convert(spot).offer).toMatchObject({
    priceMicroUsdPerHour: 800_000,
    spotPriceMicroUsdPerHour: 800_000,
  });
  expect(convert({ instance_type: 'SPOT' }).offer).toMatchObject({
    priceMicroUsdPerHour: 2_000_000,
    spotPriceMicroUsdPerHour: 2_000_000,
  });
  expect(convert({ spot_price_per_hour: 0.8 }).offer).toMatchObject({
    priceMicroUsdPerHour: 2_000_000,
    spotPriceMicroUsdPerHour: null,
  });
});

describe('a CPU offer', () => {
  const none = { gpu_type: undefined, gpu_memory_gb: undefined };

  it.each([
    { ...none, gpu_count: undefined },
    { ...none, gpu_count: 0 },
    { gpu_count: 0, gpu_memory_gb: 80 },
  ])('is one with %j [cpu-offer-detected]', (changes) => {
    expect(convert(changes).offer).toMatchObject({
      gpuType: 'CPU',
      gpuModel: '',
      displayName: 'CPU NODE',
      gpuCount: 0,
      gpuMemoryGb: 0,
      interconnectType: '',
      interconnectDescription: '',
    });
  });

  it('has no images that need a GPU [cpu-offer-images]', () => {
    const images = ['ubuntu-24.04', 'ubuntu-24.04-CUDA-13.0', 'debian-13-rocm', 'nvidia-ngc', 'debian-13'];
    expect(convert({ gpu_count: 0, os_options: images }).offer.osOptions).toEqual([
      'ubuntu-24.04',
      'debian-13',
    ]);
    expect(convert({ os_options: images }).offer.osOptions).toEqual(images);
  });

  it('is not assumed where a GPU type or a GPU count is present', () => {
    expect(convert({ gpu_count: undefined }).offer).toMatchObject({ gpuType: 'H100_SXM', gpuCount: 1 });
    expect(convert({ gpu_type: undefined }).offer).toMatchObject({ gpuType: 'GPU', gpuCount: 1 });
  });
});

it.each([
  { price_per_hour: -1 },
  { price_per_hour: 1e9 },
  { price_per_hour: Number.NaN },
  { spot_price_per_hour: -0.5 },
  { memory_gb: 1e12 },
  { gpu_count: 1e9 },
  { id: 'x'.repeat(300) },
])('an offer with %j has a mistake, and is left out', (changes) => {
  expect(mistakeOf(configurationOf(changes))).toMatch(/^the offer ".+" is left out: /);
  expect(mistakeOf(configurationOf())).toBeNull();
});

it('ignores unreadable announcements, and logs it', () => {
  expect(convert({ extras: { berth: { restart: true, stopped_price_per_hour: null } } })).toMatchObject({
    offer: { announcesRestart: true, stoppedPriceMicroUsdPerHour: null },
    problems: [],
  });
  const { offer, problems } = convert({ extras: { berth: { restart: 1 }, cpu: 'EPYC' } });
  expect(offer).toMatchObject({ announcesRestart: false, stoppedPriceMicroUsdPerHour: null });
  expect(problems).toEqual([expect.stringContaining('extras.berth of the offer "h100-1x" is ignored')]);
});

it('takes the provider’s word for the interconnect, and the profile’s for NVLink bridges [interconnect-and-nvlink]', () => {
  const extras = { interconnect: 'InfiniBand', nvlink: true };
  expect(convert({ extras }).offer).toMatchObject({ interconnectType: 'InfiniBand', isNvlink: false });
  expect(convert({ extras: { interconnect: 7 } }).offer.interconnectType).toBe('SXM5');
  expect(convert({}, [{ offers: ['h100-1x'], nvlink: true }]).offer.isNvlink).toBe(true);
});

it('keeps texts in one line and of bounded length [catalog-texts-bounded]', () => {
  const { offer } = convert({
    name: 'a\u0000\nb',
    description: '😀'.repeat(5000),
    extras: { x: 'y'.repeat(20_000) },
  });
  expect(offer).toMatchObject({ name: 'a b', extras: {} });
  expect([...offer.description]).toHaveLength(2000);
});
