import { refuse } from './errors.ts';
import { json, type ReferenceRequest, type WireAnswer } from './exchange.ts';
import type { Offer, ReferenceOptions, VolumeLocation } from './model.ts';
import type { OfferList } from './rules.ts';
import type { World } from './world.ts';

interface StockedOffer extends Omit<Offer, 'free'> {
  /** Number of units by region. */
  units: Readonly<Record<string, number>>;
}

const cpu = {
  instanceType: 'DEDICATED',
  storageGb: 40,
  images: ['ubuntu-24.04', 'debian-13'],
  supportsCloudInit: true,
} as const;

const cpuOffers: readonly StockedOffer[] = [
  {
    ...cpu,
    id: 'cpu-small',
    name: 'CPU small',
    vcpus: 2,
    memoryGb: 4,
    pricePerHour: 0.02,
    units: { 'eu-north': 64, 'us-east': 64 },
  },
  {
    ...cpu,
    id: 'cpu-plain',
    name: 'CPU without cloud-init',
    vcpus: 4,
    memoryGb: 8,
    pricePerHour: 0.04,
    supportsCloudInit: false,
    units: { 'eu-north': 16, 'ap-south': 0 },
  },
  {
    ...cpu,
    id: 'cpu-spot',
    name: 'CPU spot',
    instanceType: 'SPOT',
    vcpus: 4,
    memoryGb: 8,
    pricePerHour: 0.05,
    spotPricePerHour: 0.015,
    units: { 'us-east': 16 },
  },
];

const gpuOffer: StockedOffer = {
  ...cpu,
  id: 'gpu-l4',
  name: 'One L4',
  vcpus: 8,
  memoryGb: 32,
  storageGb: 200,
  gpu: { count: 1, type: 'NVIDIA-L4', memoryGb: 24 },
  pricePerHour: 0.8,
  units: { 'eu-north': 2 },
};

const soldOut: StockedOffer = {
  ...cpu,
  id: 'metal-epyc',
  name: 'Bare metal',
  instanceType: 'BARE_METAL',
  vcpus: 96,
  memoryGb: 768,
  storageGb: 3840,
  pricePerHour: 2.5,
  units: { 'us-east': 0 },
};

/** The cheapest offer has plenty of units. One region of another offer has none. */
export function createOffers({ gpus, soldOutOffer, moreRegions }: ReferenceOptions): Offer[] {
  const more = Array.from({ length: moreRegions }, (_, index) => [`region-${index + 1}`, 0] as const);
  const metal = { ...soldOut, units: { ...soldOut.units, ...Object.fromEntries(more) } };
  const offers = [...cpuOffers, ...(gpus ? [gpuOffer] : []), ...(soldOutOffer ? [metal] : [])];
  return offers.map(({ units, ...offer }) => ({ ...offer, free: new Map(Object.entries(units)) }));
}

export const locations: readonly VolumeLocation[] = [
  { id: 'eu-north', name: 'Europe North', types: ['nvme', 'hdd'], countryCode: 'SE' },
  { id: 'us-east', name: 'US East', types: ['nvme'], countryCode: 'US' },
];

/** GET /configurations */
export function listConfigurations(world: World, { query }: ReferenceRequest): WireAnswer {
  const { rules, offers } = world;
  const wanted = query.get('instance_type');
  refuse(rules.validateType(wanted));
  const listed = offers.filter(
    (offer) => rules.isInConfigurations(offer) && rules.matchesType(offer, wanted),
  );
  return json(200, { configurations: listed.map((offer) => toWire(world, offer, 'configurations')) });
}

/** GET /availability */
export function listAvailability(world: World, { query }: ReferenceRequest): WireAnswer {
  const { rules, offers } = world;
  const listed = offers.filter((offer) => {
    const regions = deployableRegions(world, offer);
    return rules.isInAvailability(offer, regions) && rules.matchesRegion(regions, query.get('region'));
  });
  return json(200, { configurations: listed.map((offer) => toWire(world, offer, 'availability')) });
}

const deployableRegions = ({ rules }: World, offer: Offer): string[] =>
  [...offer.free.keys()].filter((region) => rules.isAvailable(offer, region));

function toWire(world: World, offer: Offer, list: OfferList): Record<string, unknown> {
  const { rules, options } = world;
  const regions = deployableRegions(world, offer);
  const { gpu, spotPricePerHour } = offer;
  const shown = {
    id: offer.id,
    name: offer.name,
    instance_type: offer.instanceType,
    vcpus: offer.vcpus,
    memory_gb: offer.memoryGb,
    storage_gb: offer.storageGb,
    price_per_hour: offer.pricePerHour,
    ...(spotPricePerHour !== undefined && { spot_price_per_hour: spotPricePerHour }),
    available: regions.length > 0,
    regions: rules.regionsShown(offer, regions, list),
    supports_cloud_init: offer.supportsCloudInit,
    ...(options.optionalFields && {
      description: `${offer.vcpus} vCPU, ${offer.memoryGb} GB`,
      gpu_count: gpu?.count ?? 0,
      ...(gpu !== undefined && { gpu_type: gpu.type, gpu_memory_gb: gpu.memoryGb }),
      os_options: offer.images,
      maintenance: false,
      extras: { rack: 'a1' },
    }),
  };
  return rules.showOffer(offer, shown, list);
}
