import { usdFromMicroUsd } from '../../contract/values.ts';
import { invalid } from '../contract/errors.ts';
import type { VolumePricing, VolumeRegion, VolumeRegions } from '../contract/volume.ts';
import { type Price, priceFor } from '../discounts/price.ts';
import { pauseOf, type SalesPause } from '../model/sales-pause.ts';
import type { Reader } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { withoutPaused } from '../offers/sales-pauses.ts';
import { isInStock } from '../offers/to-offer.ts';
import type { VolumeProfile } from '../providers/profile.ts';
import {
  assertCatalogKnown,
  type CatalogOffer,
  type ProviderCatalog,
  type Providers,
} from '../providers/provider.ts';
import {
  hasClouds,
  hourlyRate,
  ratePerGb,
  requestedVolumeProvider,
  type VolumeProvider,
} from '../providers/volume-provider.ts';
import { sizeLimits } from './limits.ts';

type Location = ProviderCatalog['volumeLocations'][number];
type Cloud = NonNullable<VolumeProfile['regions'][string]['clouds']>[number];

/** A place for volumes: a region and, where the provider has several, one of its clouds. */
export interface VolumePlace {
  location: Location;
  cloud: Cloud | null;
}

/** The places that the provider announces. A region whose clouds the profile does not list has none. */
function volumePlaces({ provider, profile }: VolumeProvider): VolumePlace[] {
  return provider.catalog.volumeLocations.flatMap((location): VolumePlace[] => {
    if (!hasClouds(profile)) return [{ location, cloud: null }];
    return (profile.regions[location.id]?.clouds ?? []).map((cloud) => ({ location, cloud }));
  });
}

/**
 * Finds the requested place. `region` has no default, and `cloudId` is required where there are clouds (M: Create body
 * of a volume).
 * @throws {ApiError} VALIDATION_ERROR; UNAVAILABLE while the catalog is unknown
 */
export function findPlace(
  volumeProvider: VolumeProvider,
  { region, cloudId }: { region?: string | undefined; cloudId?: string | undefined },
): VolumePlace {
  const { provider, profile } = volumeProvider;
  const name = provider.profile.name;
  if (region === undefined || region === '')
    throw invalid('region', `required for ${name}; GET /api/volumes/regions lists them`);
  assertCatalogKnown(provider);
  const places = volumePlaces(volumeProvider);
  const inRegion = places.filter(({ location }) => location.id === region);
  if (inRegion.length === 0)
    throw invalid('region', `expected a region with volumes: ${namesOf(places.map((it) => it.location.id))}`);
  if (!hasClouds(profile) && cloudId !== undefined)
    throw invalid('cloudId', `${name} has no clouds to choose from`);
  if (hasClouds(profile) && cloudId === undefined)
    throw invalid('cloudId', `required for ${name}; GET /api/volumes/regions lists them`);
  const place = inRegion.find(({ cloud }) => cloud?.id === cloudId);
  if (place === undefined)
    throw invalid(
      'cloudId',
      `expected a cloud of ${region}: ${namesOf(inRegion.map((it) => it.cloud?.id ?? ''))}`,
    );
  return place;
}

function namesOf(names: readonly string[]): string {
  return [...new Set(names)].join(', ') || 'none is available now';
}

/**
 * M: GET /api/volumes/regions. Only offers in stock count; each cloud of a region has an entry. Paused regions have none.
 * @throws {ApiError} VALIDATION_ERROR
 */
export function listVolumeRegions(
  { providers, pauses = [] }: { providers: Providers; pauses?: readonly SalesPause[] },
  { provider: id }: { provider?: string | undefined },
): VolumeRegions {
  if (id === undefined) throw invalid('provider', 'required');
  const volumeProvider = requestedVolumeProvider(providers, id);
  const isSold = (region: string) => pauseOf(pauses, { providerId: id, region }) === undefined;
  const places = volumePlaces(volumeProvider).filter(({ location }) => isSold(location.id));
  const offers = [...volumeProvider.provider.catalog.offers.values()].map((offer) =>
    withoutPaused(pauses, offer),
  );
  return {
    hasAnyOffers: places.some(({ location }) => hasOffers(offers, location.id, () => true)),
    regions: places.map((place) => toRegion(volumeProvider, place, offers)),
  };
}

function toRegion(
  volumeProvider: VolumeProvider,
  { location, cloud }: VolumePlace,
  offers: readonly CatalogOffer[],
): VolumeRegion {
  const { id, name, types, countryCode } = location;
  const { minGb, maxGb } = sizeLimits(volumeProvider, id);
  return {
    id,
    name,
    types: [...types],
    ...(countryCode !== null && { country_code: countryCode }),
    hasGpuOffers: hasOffers(offers, id, ({ gpuCount }) => gpuCount > 0),
    minSizeGb: minGb,
    maxSizeGb: maxGb,
    hourlyRatePerGb: usdFromMicroUsd(ratePerGb(volumeProvider.profile, { region: id, cloudId: cloud?.id })),
    ...(cloud !== null && { cloudId: cloud.id, cloudName: cloud.name }),
  };
}

function hasOffers(
  offers: readonly CatalogOffer[],
  region: string,
  fits: (offer: CatalogOffer) => boolean,
): boolean {
  return offers.some((offer) => isInStock(offer) && offer.inStockRegions.includes(region) && fits(offer));
}

/**
 * M: GET /api/volumes/pricing, before discounts; without a region, the base price.
 * @throws {ApiError} VALIDATION_ERROR
 */
export function readVolumePricing(
  { providers }: { providers: Providers },
  query: { provider?: string | undefined; region?: string | undefined; cloudId?: string | undefined },
): VolumePricing {
  const { provider, region, cloudId } = query;
  if (provider === undefined) throw invalid('provider', 'required');
  const volumeProvider = requestedVolumeProvider(providers, provider);
  if (cloudId !== undefined && region === undefined) throw invalid('region', 'required with cloudId');
  const isNamed = region !== undefined && (cloudId !== undefined || !hasClouds(volumeProvider.profile));
  if (isNamed) findPlace(volumeProvider, { region, cloudId });
  const rate = ratePerGb(volumeProvider.profile, { region: region ?? '', cloudId });
  return { provider, hourlyRatePerGb: usdFromMicroUsd(rate) };
}

/** The price for a create or resize (M: Volume, `hourlyRate`: "Discounted rate locked at create/resize"). */
export async function newPrice(
  read: Pick<Reader, 'discounts'>,
  profile: VolumeProfile,
  volume: Pick<VolumeRecord, 'teamId' | 'region' | 'cloudId' | 'sizeGb'>,
  now: number,
): Promise<Price & { discountEndsAt: number | null; lastPriceUpdateAt: number }> {
  const price = await priceFor(read, volume.teamId, hourlyRate(profile, volume), now);
  return { ...price, lastPriceUpdateAt: now };
}
