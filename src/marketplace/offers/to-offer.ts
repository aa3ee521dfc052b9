import { microUsdFromUsd, usdFromMicroUsd } from '../../contract/values.ts';
import type { Offer } from '../contract/offer.ts';
import type { InstanceType } from '../contract/values.ts';
import { discounted } from '../discounts/price.ts';
import { offerPauseUnsupportedReason } from '../providers/capabilities.ts';
import type { ProviderProfile } from '../providers/profile.ts';
import { type CatalogOffer, deployableImages } from '../providers/provider.ts';

/** M: Offer, `instanceType`: bare metal is shown as DEDICATED with `extras.deployment_type` `baremetal`. */
export function toOfferType(instanceType: InstanceType): Offer['instanceType'] {
  return instanceType === 'BARE_METAL' ? 'DEDICATED' : instanceType;
}

/** Whether the offer can be deployed now. An offer in maintenance cannot. */
export function isInStock({ inStockRegions, maintenance }: CatalogOffer): boolean {
  return inStockRegions.length > 0 && !maintenance;
}

/** M: Offer, without the fields for authenticated requests. In stock, `clusters` are the regions with stock. */
export function toOffer(offer: CatalogOffer, profile: ProviderProfile, note: string | null): Offer {
  const available = isInStock(offer);
  const clusters = available ? offer.inStockRegions : offer.regions;
  const { spotPriceMicroUsdPerHour: spotPrice } = offer;
  return {
    provider: offer.providerId,
    offerId: offer.offerId,
    name: offer.name,
    description: offer.description,
    vcpus: offer.vcpus,
    memory: offer.memoryGb,
    storage: offer.storageGb,
    gpuCount: offer.gpuCount,
    gpu_memory: offer.gpuMemoryGb,
    price: usdFromMicroUsd(offer.priceMicroUsdPerHour),
    ...(spotPrice !== null && { spot_price: usdFromMicroUsd(spotPrice) }),
    available,
    clusters: [...clusters],
    ...(clusters.length === 1 && clusters[0] !== undefined && { region: clusters[0] }),
    os_options: [...deployableImages(offer)],
    maintenance: offer.maintenance,
    interconnectType: offer.interconnectType,
    interconnectDescription: offer.interconnectDescription,
    instanceType: toOfferType(offer.instanceType),
    supportsCloudInit: offer.supportsCloudInit,
    extras: shownExtras(offer),
    ...(note !== null && { note }),
    pauseUnsupportedReason: offerPauseUnsupportedReason(profile, offer, clusters),
    ...(offer.isNvlink && { nvlink: true as const }),
  };
}

/** M: Offer, `extras.deployment_type`. */
const DEPLOYMENT_TYPES = {
  SPOT: 'vm',
  DEDICATED: 'vm',
  BARE_METAL: 'baremetal',
  CLUSTER: 'cluster',
} as const satisfies Record<InstanceType, string>;

const DEFAULT_NETWORKING_TYPE = 'public';

/** M: `extras`: the provider's own, without `berth`. `nvlink` is set only for offers with NVLink bridges. */
export function shownExtras({
  extras,
  instanceType,
}: Pick<CatalogOffer, 'extras' | 'instanceType'>): Offer['extras'] {
  const { berth: _, nvlink: __, networking_type: networking, ...rest } = extras;
  return {
    ...rest,
    deployment_type: DEPLOYMENT_TYPES[instanceType],
    networking_type:
      typeof networking === 'string' && networking !== '' ? networking : DEFAULT_NETWORKING_TYPE,
  };
}

/** M: "Authenticated requests also get per-offer: `originalPrice` …". 0: the team has no discount now. */
export function withDiscount(offer: Offer, percentage: number): Offer {
  return {
    ...offer,
    originalPrice: offer.price,
    discountedPrice: usdFromMicroUsd(discounted(microUsdFromUsd(offer.price), percentage)),
    discountPercentage: percentage,
    hasDiscount: percentage > 0,
  };
}
