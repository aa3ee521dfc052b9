import { type Catalog, parseCatalogFile, toCatalog } from '../../src/orchestrator/catalog/catalog.ts';

/** The name of the second platform, where there are two: it has the offer `cpu` and the volumes of type `shared`. */
export const SOUND_PLATFORM = 'east';

/** Few units of each offer, so that clients race for the last. */
function make(sound = 'default'): Catalog {
  const size = { min_size_gb: 10, max_size_gb: 1_000 };
  const region = (token: string, datacenter: string): object => ({
    name: token,
    country_code: 'DE',
    datacenter,
    // Four volumes of a simulated client.
    storage_capacity_gb: 80,
    volume_types: [
      { name: 'single', price_per_gb_hour: 0.000_14, ...size, platform: 'default' },
      { name: 'shared', price_per_gb_hour: 0.000_21, ...size, shareable: true, platform: sound },
    ],
  });
  const offer = (id: string, type: string, capacity: Record<string, number>, more: object = {}): object => ({
    id,
    name: `Offer ${id}`,
    instance_type: type,
    vcpus: 4,
    memory_gb: 16,
    storage_gb: 80,
    price_per_hour: 0.089,
    os_options: ['ubuntu-24.04'],
    supports_cloud_init: true,
    online_within_s: 90,
    capacity,
    ...more,
  });
  const parsed = parseCatalogFile({
    regions: { 'eu-north': region('eu-north', 'dc-north-1'), 'eu-south': region('eu-south', 'dc-south-7') },
    offers: [
      offer('cpu', 'DEDICATED', { 'eu-north': 4, 'eu-south': 3 }, { platform: sound }),
      offer(
        'gpu',
        'DEDICATED',
        { 'eu-north': 2, 'eu-south': 1 },
        { on_stop: 'hold', gpu_count: 8, gpu_type: 'H200', gpu_memory_gb: 141 },
      ),
      offer('spot', 'SPOT', { 'eu-north': 2, 'eu-south': 2 }, { spot_price_per_hour: 0.03 }),
      offer('metal', 'BARE_METAL', { 'eu-south': 1 }, { resumable: false, online_within_s: 240 }),
    ],
  });
  if ('issues' in parsed) throw new Error(JSON.stringify(parsed.issues));
  return toCatalog(parsed.file);
}

export const catalog = make();
/** The same for two platforms. */
export const catalogOfTwo = make(SOUND_PLATFORM);

export function unitsOf(offerId: string, datacenter: string): number {
  const regions = [...catalog.regions.values()];
  const token = regions.find((entry) => entry.datacenter === datacenter)?.token;
  return catalog.offers.get(offerId)?.placements.find((place) => place.region === token)?.units ?? 0;
}
