import { describe, expect, it } from 'vitest';
import { effectivePriceMicroUsdPerHour, parseCatalogFile, toCatalog } from './catalog.ts';

const region = { name: 'Frankfurt', country_code: 'DE', datacenter: 'hal-fra1-b' };
const volumeType = { name: 'nvme', price_per_gb_hour: 0.00014, min_size_gb: 10, max_size_gb: 1000 };
const offer = {
  id: 'cpu',
  name: 'CPU',
  instance_type: 'DEDICATED',
  vcpus: 4,
  memory_gb: 16,
  storage_gb: 80,
  price_per_hour: 0.1,
  os_options: ['ubuntu-24.04'],
  supports_cloud_init: true,
  capacity: { 'eu-frankfurt': 3 },
};
const gpu = { gpu_count: 1, gpu_type: 'NVIDIA H100', gpu_memory_gb: 80 };

/** A file with one region and one offer, with the given fields replaced. */
function fileWith(offerFields: object = {}, regionFields: object = {}): object {
  return {
    regions: { 'eu-frankfurt': { ...region, ...regionFields } },
    offers: [{ ...offer, ...offerFields }],
  };
}

/** Files with several offers or regions. */
const offersWith = (...fields: object[]) => ({
  ...fileWith(),
  offers: fields.map((own, index) => ({ ...offer, id: `o${index}`, ...own })),
});
const regionsWith = (regions: object) => ({ ...fileWith(), regions: { 'eu-frankfurt': region, ...regions } });

function issuesOf(raw: unknown): string[] {
  const parsed = parseCatalogFile(raw);
  return 'issues' in parsed ? parsed.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) : [];
}

describe('a catalog file', () => {
  it('becomes the catalog, with its defaults, money in micro-USD and times in ms', () => {
    const parsed = parseCatalogFile(fileWith({}, { volume_types: [volumeType] }));
    if (!('file' in parsed)) throw new Error(JSON.stringify(parsed.issues));
    const { regions, offers } = toCatalog(parsed.file);
    expect([...regions.values()]).toEqual([
      {
        token: 'eu-frankfurt',
        name: 'Frankfurt',
        countryCode: 'DE',
        datacenter: 'hal-fra1-b',
        drained: false,
        maintenance: false,
        volumeTypes: [
          {
            name: 'nvme',
            priceMicroUsdPerGbHour: 140,
            minSizeGb: 10,
            maxSizeGb: 1000,
            shareable: false,
            platform: 'default',
          },
        ],
      },
    ]);
    expect(offers.get('cpu')).toMatchObject({
      priceMicroUsdPerHour: 100_000,
      placements: [{ region: 'eu-frankfurt', units: 3 }],
      osOptions: ['ubuntu-24.04'],
      maintenance: false,
      rootDisk: undefined,
      onStop: 'release',
      resumable: true,
      restartable: true,
      stoppedPriceMicroUsdPerHour: undefined,
      minimumReservationMinutes: undefined,
      onlineWithinMs: 600_000,
      extras: undefined,
    });
  });

  it('keeps explicit values instead of defaults', () => {
    const said = {
      maintenance: true,
      root_disk: { min_gb: 80, max_gb: 90 },
      on_stop: 'hold',
      resumable: false,
      restartable: false,
      stopped_price_per_hour: 0.02,
      minimum_reservation_minutes: 90,
      online_within_s: 3600,
      extras: { a: [1] },
    };
    const parsed = parseCatalogFile(
      fileWith(
        { ...gpu, ...said, instance_type: 'SPOT', spot_price_per_hour: 0.07 },
        { drained: true, maintenance: true },
      ),
    );
    if (!('file' in parsed)) throw new Error(JSON.stringify(parsed.issues));
    const { regions, offers } = toCatalog(parsed.file);
    const cpu = offers.get('cpu');
    expect(regions.get('eu-frankfurt')).toMatchObject({ drained: true, maintenance: true });
    expect(cpu).toMatchObject({
      gpuCount: 1,
      gpuType: 'NVIDIA H100',
      gpuMemoryGb: 80,
      maintenance: true,
      rootDisk: { minGb: 80, maxGb: 90 },
      onStop: 'hold',
      resumable: false,
      restartable: false,
      stoppedPriceMicroUsdPerHour: 20_000,
      minimumReservationMinutes: 90,
      onlineWithinMs: 3_600_000,
      extras: { a: [1] },
    });
    expect(cpu && effectivePriceMicroUsdPerHour(cpu)).toBe(70_000);
  });

  it.each<[string, unknown, string]>([
    ['an unknown key', fileWith({ colour: 'red' }), 'offers.0: Unrecognized key: "colour"'],
    [
      'a token that is not canonical',
      regionsWith({ EU_1: { ...region, datacenter: 'x1' } }),
      'regions.EU_1: Invalid key in record',
    ],
    [
      'a negative capacity',
      fileWith({ capacity: { 'eu-frankfurt': -1 } }),
      'offers.0.capacity.eu-frankfurt: Too small: expected number to be >=0',
    ],
    [
      'half a unit',
      fileWith({ capacity: { 'eu-frankfurt': 0.5 } }),
      'offers.0.capacity.eu-frankfurt: Invalid input: expected int, received number',
    ],
    [
      'a price below a micro-USD',
      fileWith({ price_per_hour: 0.0000001 }),
      'offers.0.price_per_hour: expected USD with at most 6 decimals',
    ],
    [
      'a negative price',
      fileWith({ price_per_hour: -1 }),
      'offers.0.price_per_hour: Too small: expected number to be >=0',
    ],
    [
      'no image',
      fileWith({ os_options: [] }),
      'offers.0.os_options: expected at least one image: the first is the default',
    ],
    [
      'an image twice',
      fileWith({ os_options: ['a', 'a'] }),
      'offers.0.os_options.1: expected a unique value, but "a" is already used',
    ],
    [
      'an offer id twice',
      offersWith({ id: 'a' }, { id: 'a' }),
      'offers.1.id: expected a unique value, but "a" is already used',
    ],
    [
      'a datacenter twice',
      regionsWith({ 'us-east': region }),
      'regions.us-east.datacenter: expected a unique value, but "hal-fra1-b" is already used',
    ],
    [
      'an unknown region',
      fileWith({ capacity: { 'eu-frankfurt': 1, mars: 1 } }),
      'offers.0.capacity.mars: unknown region; expected one of: eu-frankfurt',
    ],
    [
      'no region',
      fileWith({ capacity: {} }),
      'offers.0.capacity: expected at least one region; write 0 units where the offer is sold out',
    ],
    ['no offer', { ...fileWith(), offers: [] }, 'offers: expected at least one offer'],
    [
      'spot without its price',
      fileWith({ instance_type: 'SPOT' }),
      'offers.0.spot_price_per_hour: missing: an offer of instance_type SPOT needs a spot price',
    ],
    [
      'spot above on-demand',
      fileWith({ instance_type: 'SPOT', spot_price_per_hour: 0.2 }),
      'offers.0.spot_price_per_hour: expected at most price_per_hour (0.1)',
    ],
    [
      'stopped dearer than running',
      fileWith({ stopped_price_per_hour: 0.11 }),
      'offers.0.stopped_price_per_hour: expected at most its price while running (0.1)',
    ],
    [
      'stopped dearer than running at a spot price',
      fileWith({ instance_type: 'SPOT', spot_price_per_hour: 0.05, stopped_price_per_hour: 0.06 }),
      'offers.0.stopped_price_per_hour: expected at most its price while running (0.05)',
    ],
    [
      'half a minute',
      fileWith({ minimum_reservation_minutes: 0.5 }),
      'offers.0.minimum_reservation_minutes: Invalid input: expected int, received number',
    ],
    [
      'what only Berth says of itself',
      fileWith({ extras: { berth: { restart: true } } }),
      'offers.0.extras.berth: is set by Berth: use restartable, stopped_price_per_hour and minimum_reservation_minutes of the offer instead',
    ],
    [
      'a spot price of an offer that is not SPOT',
      fileWith({ spot_price_per_hour: 0.05 }),
      'offers.0.spot_price_per_hour: only an offer of instance_type SPOT is sold at a spot price, this one is DEDICATED',
    ],
    [
      'GPUs of no type',
      fileWith({ gpu_count: 1 }),
      'offers.0.gpu_type: missing: an offer with gpu_count needs a gpu_type',
    ],
    [
      'a GPU type without GPUs',
      fileWith({ gpu_type: 'NVIDIA H100' }),
      'offers.0.gpu_type: expected a gpu_count above 0 as well',
    ],
    [
      'GPU memory without GPUs',
      fileWith({ gpu_count: 0, gpu_memory_gb: 80 }),
      'offers.0.gpu_memory_gb: expected a gpu_count above 0 as well',
    ],
    [
      'a GPU in two spellings',
      offersWith(gpu, { ...gpu, gpu_type: 'nvidia-h100' }),
      'offers.1.gpu_type: expected the same spelling as before: "NVIDIA H100"',
    ],
    [
      'a root disk range upside down',
      fileWith({ root_disk: { min_gb: 90, max_gb: 80 } }),
      'offers.0.root_disk.min_gb: expected at most max_gb (80)',
    ],
    [
      'a root disk range without its default',
      fileWith({ root_disk: { min_gb: 90, max_gb: 100 } }),
      'offers.0.root_disk: expected a range that includes storage_gb (80), the size when a create asks for none',
    ],
    [
      'a volume type twice',
      fileWith({}, { volume_types: [volumeType, volumeType] }),
      'regions.eu-frankfurt.volume_types.1.name: expected a unique value, but "nvme" is already used',
    ],
    [
      'volume sizes upside down',
      fileWith({}, { volume_types: [{ ...volumeType, min_size_gb: 2000 }] }),
      'regions.eu-frankfurt.volume_types.0.min_size_gb: expected at most max_size_gb (1000)',
    ],
    [
      'a country in words',
      fileWith({}, { country_code: 'Germany' }),
      'regions.eu-frankfurt.country_code: expected two capital letters (ISO 3166-1 alpha-2), such as "DE"',
    ],
  ])('refuses %s', (_what, raw, issue) => {
    expect(issuesOf(raw)).toEqual([issue]);
  });

  it.each<[string, unknown, string]>([
    [
      'a region token',
      regionsWith({ 'x-hal-fra1-b': { ...region, datacenter: 'zz9' } }),
      'regions.x-hal-fra1-b',
    ],
    ['the name of a region', fileWith({}, { name: 'Frankfurt (HAL-FRA1-B)' }), 'regions.eu-frankfurt.name'],
    [
      'a volume type',
      fileWith({}, { volume_types: [{ ...volumeType, name: 'hal-fra1-b-nvme' }] }),
      'regions.eu-frankfurt.volume_types.0.name',
    ],
    ['an offer id', fileWith({ id: 'hal-fra1-b.cpu' }), 'offers.0.id'],
    ['an offer name', fileWith({ name: 'CPU hal-fra1-b' }), 'offers.0.name'],
    ['a description', fileWith({ description: 'In hal-fra1-b.' }), 'offers.0.description'],
    ['a GPU type', fileWith({ ...gpu, gpu_type: 'hal-fra1-b H100' }), 'offers.0.gpu_type'],
    ['an image', fileWith({ os_options: ['a', 'hal-fra1-b/ubuntu'] }), 'offers.0.os_options.1'],
    [
      'a key of extras',
      fileWith({ extras: { rack: { 'hal-fra1-b': 1 } } }),
      'offers.0.extras.rack.hal-fra1-b',
    ],
    ['a value of extras', fileWith({ extras: { racks: ['a', 'hal-fra1-b-7'] } }), 'offers.0.extras.racks.1'],
  ])('refuses a datacenter code in %s, where clients would see it', (_what, raw, path) => {
    expect(issuesOf(raw)).toEqual([
      `${path}: contains the datacenter code "hal-fra1-b", which clients must never see`,
    ]);
  });

  it('takes a region token that is its own datacenter code: nothing leaks by it', () => {
    expect(issuesOf(regionsWith({ 'eu-two': { ...region, datacenter: 'EU-two' } }))).toEqual([]);
  });

  it('continues past a malformed offer or region, whose token counts as known', () => {
    const raw = { regions: { 'eu-frankfurt': 7 }, offers: [7, { ...offer, gpu_count: 1 }] };
    expect(issuesOf(raw)).toEqual([
      expect.stringMatching(/^regions\.eu-frankfurt: /),
      expect.stringMatching(/^offers\.0: /),
      'offers.1.gpu_type: missing: an offer with gpu_count needs a gpu_type',
    ]);
  });

  it.each([null, undefined, [], 'a', 7, { regions: [], offers: {} }])('refuses %j', (raw) => {
    expect(issuesOf(raw).length).toBeGreaterThan(0);
  });
});
