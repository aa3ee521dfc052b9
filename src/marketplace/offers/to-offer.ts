import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Offer } from '../contract/offer.ts';
import type { InstanceType } from '../contract/values.ts';
import { offerPauseUnsupportedReason } from '../providers/capabilities.ts';
import type { ProviderProfile } from '../providers/profile.ts';
import { type CatalogOffer, deployableImages } from '../providers/provider.ts';
import { shownExtras } from './shown-extras.ts';

/**
 * M: Offer, `instanceType`: `SPOT`, `DEDICATED` or `CLUSTER`. Bare metal is a DEDICATED offer whose deployment is
 * BARE_METAL; `extras.deployment_type` tells.
 */
export function toOfferType(instanceType: InstanceType): Offer['instanceType'] {
  return instanceType === 'BARE_METAL' ? 'DEDICATED' : instanceType;
}

/** Whether an instance of it can be made now. One in maintenance cannot. */
export function isInStock({ inStockRegions, maintenance }: CatalogOffer): boolean {
  return inStockRegions.length > 0 && !maintenance;
}

/** M: Offer, without what authenticated requests get on top. Of one in stock `clusters` are the regions that have it. */
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
