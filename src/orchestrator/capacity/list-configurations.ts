import type { Configuration, InstanceType } from '../../contract/configuration.ts';
import type { BerthExtras } from '../../contract/extensions.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Clock } from '../../ports/clock.ts';
import { type Catalog, canCloudInit, canRestart, type Offer } from '../catalog/catalog.ts';
import { type CordonRecord, isActive, isOver } from '../model/cordon.ts';
import type { Manifests } from '../model/platform-driver.ts';
import type { Reader } from '../model/store.ts';
import { isInMaintenance, maintenanceWindows } from './cordons.ts';
import { type OfferStock, type Supply, stockOfOffers } from './deployable.ts';

interface Deps {
  catalog: Catalog;
  read: Pick<Reader, 'claims' | 'cordons'>;
  clock: Pick<Clock, 'now'>;
  manifests: Manifests;
  supply: Supply;
}

/** The data for showing an offer. */
interface Shown extends Pick<Deps, 'catalog' | 'manifests'> {
  /** Current and future cordons. */
  cordons: readonly CordonRecord[];
  active: readonly CordonRecord[];
  stock: ReadonlyMap<string, OfferStock>;
}

/** O: Availability contract, 1 and 2: every offer, deployable or not, with `available` set. */
export async function listConfigurations(deps: Deps, instanceType?: InstanceType): Promise<Configuration[]> {
  const shown = await readStock(deps);
  return [...deps.catalog.offers.values()]
    .filter((offer) => instanceType === undefined || offer.instanceType === instanceType)
    .map((offer) => ({
      ...toConfiguration(shown, offer),
      available: shown.stock.get(offer.id)?.deployable.length !== 0,
      regions: offer.placements.map((placement) => placement.region),
    }));
}

/** O: Availability contract, 3: only offers that can be deployed now, with only the regions where they can. */
export async function listAvailable(deps: Deps, region?: string): Promise<Configuration[]> {
  const shown = await readStock(deps);
  return [...deps.catalog.offers.values()].flatMap((offer) => {
    const regions = shown.stock.get(offer.id)?.deployable ?? [];
    const isOffered = region === undefined ? regions.length > 0 : regions.includes(region);
    return isOffered ? [{ ...toConfiguration(shown, offer), available: true, regions }] : [];
  });
}

async function readStock({ catalog, read, clock, manifests, supply }: Deps): Promise<Shown> {
  const [use, all] = await Promise.all([read.claims.use(), read.cordons.list()]);
  const now = clock.now();
  const cordons = all.filter((cordon) => !isOver(cordon, now));
  const active = cordons.filter((cordon) => isActive(cordon, now));
  const stock = stockOfOffers({ catalog, supply, cordons: active }, use);
  return { catalog, manifests, cordons, active, stock };
}

function toConfiguration(shown: Shown, offer: Offer): Omit<Configuration, 'available' | 'regions'> {
  const { catalog, manifests, active } = shown;
  const { spotPriceMicroUsdPerHour: spot } = offer;
  const isEveryRegionInMaintenance =
    offer.placements.length > 0 &&
    offer.placements.every(
      ({ region }) =>
        catalog.regions.get(region)?.maintenance === true || isInMaintenance(active, offer, region),
    );
  return {
    id: offer.id,
    name: offer.name,
    description: offer.description,
    instance_type: offer.instanceType,
    vcpus: offer.vcpus,
    memory_gb: offer.memoryGb,
    storage_gb: offer.storageGb,
    gpu_count: offer.gpuCount,
    gpu_type: offer.gpuType,
    gpu_memory_gb: offer.gpuMemoryGb,
    price_per_hour: usdFromMicroUsd(offer.priceMicroUsdPerHour),
    spot_price_per_hour: spot === undefined ? undefined : usdFromMicroUsd(spot),
    os_options: offer.osOptions.length > 0 ? [...offer.osOptions] : undefined,
    supports_cloud_init: canCloudInit(manifests.of(offer), offer),
    maintenance: offer.maintenance || isEveryRegionInMaintenance,
    extras: { ...offer.extras, berth: toBerthExtras(shown, offer) },
  };
}

/** Features of this orchestrator for the offer that go beyond O:. */
function toBerthExtras({ manifests, cordons, stock }: Shown, offer: Offer): BerthExtras {
  const manifest = manifests.of(offer);
  const { unavailable = [] } = stock.get(offer.id) ?? {};
  const windows = maintenanceWindows(cordons, offer);
  const { stoppedPriceMicroUsdPerHour: stoppedPrice, minimumReservationMinutes: minutes } = offer;
  return {
    restart: canRestart(manifest, offer),
    volume_resize: manifest.resizeVolume !== 'none',
    ...(manifest.volumeUsage === true && { volume_usage: true }),
    ...(stoppedPrice !== undefined && { stopped_price_per_hour: usdFromMicroUsd(stoppedPrice) }),
    minimum_reservation_minutes: minutes,
    ...(windows.length > 0 && { maintenance_windows: windows }),
    unavailable,
  };
}
