import { usdFromMicroUsd } from '../../contract/values.ts';
import { invalid } from '../contract/errors.ts';
import type { VolumeRegion, VolumeRegions } from '../contract/volume.ts';
import type { CatalogOffer, Provider, Providers } from '../providers/provider.ts';
import { ratePerGb } from './hourly-rate.ts';
import { sizeLimits } from './limits.ts';
import { type VolumePlace, volumePlaces } from './places.ts';
import { type VolumeSeller, volumeSeller } from './seller.ts';

/**
 * M: GET /api/volumes/regions: "`hasGpuOffers` is per region; `hasAnyOffers` is true when any region has offers". Only
 * what is in stock counts. One entry per cloud, where a provider has several.
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function listVolumeRegions(
  { providers }: { providers: Providers },
  { provider: id }: { provider?: string | undefined },
): VolumeRegions {
  if (id === undefined) throw invalid('provider', 'required');
  const seller = volumeSeller(providers, id);
  const places = volumePlaces(seller);
  const { provider } = seller;
  return {
    hasAnyOffers: places.some(({ location }) => hasOffers(provider, location.id, () => true)),
    regions: places.map((place) => toRegion(seller, place)),
  };
}

function toRegion(seller: VolumeSeller, { location, cloud }: VolumePlace): VolumeRegion {
  const { id, name, types, countryCode } = location;
  const { minGb, maxGb } = sizeLimits(seller, id);
  return {
    id,
    name,
    types: [...types],
    ...(countryCode !== null && { country_code: countryCode }),
    hasGpuOffers: hasOffers(seller.provider, id, ({ gpuCount }) => gpuCount > 0),
    minSizeGb: minGb,
    maxSizeGb: maxGb,
    hourlyRatePerGb: usdFromMicroUsd(ratePerGb(seller.profile, { region: id, cloudId: cloud?.id })),
    ...(cloud !== null && { cloudId: cloud.id, cloudName: cloud.name }),
  };
}

function hasOffers({ catalog }: Provider, region: string, fits: (offer: CatalogOffer) => boolean): boolean {
  return [...catalog.offers.values()].some((offer) => offer.inStockRegions.includes(region) && fits(offer));
}
