import type { Catalog, Offer, Region } from '../../src/orchestrator/catalog/catalog.ts';

const volumeTypes = [
  {
    name: 'single',
    priceMicroUsdPerGbHour: 140,
    minSizeGb: 10,
    maxSizeGb: 1_000,
    shareable: false,
    platform: 'default',
  },
  {
    name: 'shared',
    priceMicroUsdPerGbHour: 210,
    minSizeGb: 10,
    maxSizeGb: 1_000,
    shareable: true,
    platform: 'default',
  },
];

function region(token: string, datacenter: string): Region {
  return {
    token,
    name: token,
    countryCode: 'DE',
    datacenter,
    drained: false,
    maintenance: false,
    volumeTypes,
    // Four volumes of a simulated client.
    storageGb: 80,
  };
}

const regions = [region('eu-north', 'dc-north-1'), region('eu-south', 'dc-south-7')];

function offer(id: string, rest: Pick<Offer, 'instanceType' | 'placements'> & Partial<Offer>): Offer {
  return {
    id,
    name: `Offer ${id}`,
    description: undefined,
    vcpus: 4,
    memoryGb: 16,
    storageGb: 80,
    gpuCount: undefined,
    gpuType: undefined,
    gpuMemoryGb: undefined,
    priceMicroUsdPerHour: 89_000,
    spotPriceMicroUsdPerHour: undefined,
    osOptions: ['ubuntu-24.04'],
    supportsCloudInit: true,
    maintenance: false,
    rootDisk: undefined,
    onStop: 'release',
    resumable: true,
    restartable: true,
    platform: 'default',
    machine: {},
    onlineWithinMs: 90_000,
    stoppedPriceMicroUsdPerHour: undefined,
    minimumReservationMinutes: undefined,
    extras: undefined,
    ...rest,
  };
}

const placements = (north: number, south: number): Offer['placements'] => [
  { region: 'eu-north', units: north },
  { region: 'eu-south', units: south },
];

const offers = [
  offer('cpu', { instanceType: 'DEDICATED', placements: placements(4, 3) }),
  offer('gpu', {
    instanceType: 'DEDICATED',
    placements: placements(2, 1),
    onStop: 'hold',
    gpuCount: 8,
    gpuType: 'H200',
    gpuMemoryGb: 141,
  }),
  offer('spot', { instanceType: 'SPOT', placements: placements(2, 2), spotPriceMicroUsdPerHour: 30_000 }),
  offer('metal', {
    instanceType: 'BARE_METAL',
    placements: [{ region: 'eu-south', units: 1 }],
    resumable: false,
    onlineWithinMs: 240_000,
  }),
];

/** The name of the second platform, where there are two: it has the offer `cpu` and the volumes of type `shared`. */
export const SOUND_PLATFORM = 'east';

/** Few units of each offer, so that clients race for the last. */
export const catalog: Catalog = {
  regions: new Map(regions.map((entry) => [entry.token, entry])),
  offers: new Map(offers.map((entry) => [entry.id, entry])),
};

/** The same for two platforms. */
export const catalogOfTwo: Catalog = {
  regions: new Map(
    regions.map((entry) => {
      const types = entry.volumeTypes.map((type) =>
        type.name === 'shared' ? { ...type, platform: SOUND_PLATFORM } : type,
      );
      return [entry.token, { ...entry, volumeTypes: types }];
    }),
  ),
  offers: new Map(
    offers.map((entry) => [entry.id, entry.id === 'cpu' ? { ...entry, platform: SOUND_PLATFORM } : entry]),
  ),
};

export function unitsOf(offerId: string, datacenter: string): number {
  const token = regions.find((entry) => entry.datacenter === datacenter)?.token;
  return catalog.offers.get(offerId)?.placements.find((place) => place.region === token)?.units ?? 0;
}
