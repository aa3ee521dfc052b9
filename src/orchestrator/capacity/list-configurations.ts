import type { Configuration, InstanceType } from '../../contract/configuration.ts';
import type { BerthExtras } from '../../contract/extensions.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { type Catalog, canCloudInit, canRestart, type Offer } from '../catalog/catalog.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { ClaimReader } from '../model/store.ts';
import { deployableRegions, type Sale } from './deployable.ts';

interface Deps {
  catalog: Catalog;
  claims: ClaimReader;
  manifests: Manifests;
  platform: Sale;
}

/** O: Availability contract, 1 and 2: every offer, deployable or not, with `available` set. */
export async function listConfigurations(
  { catalog, claims, manifests, platform }: Deps,
  instanceType?: InstanceType,
): Promise<Configuration[]> {
  const deployable = deployableRegions(catalog, await claims.use(), platform);
  return [...catalog.offers.values()]
    .filter((offer) => instanceType === undefined || offer.instanceType === instanceType)
    .map((offer) => ({
      ...toConfiguration(catalog, manifests, offer),
      available: deployable.get(offer.id)?.length !== 0,
      regions: offer.placements.map((placement) => placement.region),
    }));
}

/** O: Availability contract, 3: only what can be deployed now, and of its regions only those where it can. */
export async function listAvailable(
  { catalog, claims, manifests, platform }: Deps,
  region?: string,
): Promise<Configuration[]> {
  const deployable = deployableRegions(catalog, await claims.use(), platform);
  return [...catalog.offers.values()].flatMap((offer) => {
    const regions = deployable.get(offer.id) ?? [];
    const isOffered = region === undefined ? regions.length > 0 : regions.includes(region);
    return isOffered ? [{ ...toConfiguration(catalog, manifests, offer), available: true, regions }] : [];
  });
}

function toConfiguration(
  catalog: Catalog,
  manifests: Manifests,
  offer: Offer,
): Omit<Configuration, 'available' | 'regions'> {
  const { regions } = catalog;
  const isEveryRegionInMaintenance =
    offer.placements.length > 0 &&
    offer.placements.every(({ region }) => regions.get(region)?.maintenance === true);
  return {
    id: offer.id,
    name: offer.name,
    ...(offer.description !== undefined && { description: offer.description }),
    instance_type: offer.instanceType,
    vcpus: offer.vcpus,
    memory_gb: offer.memoryGb,
    storage_gb: offer.storageGb,
    ...(offer.gpuCount !== undefined && { gpu_count: offer.gpuCount }),
    ...(offer.gpuType !== undefined && { gpu_type: offer.gpuType }),
    ...(offer.gpuMemoryGb !== undefined && { gpu_memory_gb: offer.gpuMemoryGb }),
    price_per_hour: usdFromMicroUsd(offer.priceMicroUsdPerHour),
    ...(offer.spotPriceMicroUsdPerHour !== undefined && {
      spot_price_per_hour: usdFromMicroUsd(offer.spotPriceMicroUsdPerHour),
    }),
    ...(offer.osOptions.length > 0 && { os_options: [...offer.osOptions] }),
    supports_cloud_init: canCloudInit(manifests.of(offer), offer),
    maintenance: offer.maintenance || isEveryRegionInMaintenance,
    extras: { ...offer.extras, berth: toBerthExtras(manifests, offer) },
  };
}

/** What this orchestrator offers beyond O: for the offer. */
function toBerthExtras(manifests: Manifests, offer: Offer): BerthExtras {
  const manifest = manifests.of(offer);
  const { stoppedPriceMicroUsdPerHour: stoppedPrice, minimumReservationMinutes: minutes } = offer;
  return {
    restart: canRestart(manifest, offer),
    volume_resize: manifest.resizeVolume !== 'none',
    ...(stoppedPrice !== undefined && { stopped_price_per_hour: usdFromMicroUsd(stoppedPrice) }),
    ...(minutes !== undefined && { minimum_reservation_minutes: minutes }),
  };
}
