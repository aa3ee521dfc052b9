import { ApiError, invalid } from '../contract/errors.ts';
import type { VolumeProfile } from '../providers/profile.ts';
import type { ProviderCatalog } from '../providers/provider.ts';
import type { VolumeSeller } from './seller.ts';

type Location = ProviderCatalog['volumeLocations'][number];
type Cloud = NonNullable<VolumeProfile['regions'][string]['clouds']>[number];

/** Where a volume can be: a region and, where its provider has several, a cloud of it. */
export interface VolumePlace {
  location: Location;
  cloud: Cloud | null;
}

/** The places that the provider announces, as far as its profile knows how to name them. */
export function volumePlaces({ provider, profile }: VolumeSeller): VolumePlace[] {
  return provider.catalog.volumeLocations.flatMap((location): VolumePlace[] => {
    if (!profile.cloud_id) return [{ location, cloud: null }];
    return (profile.regions[location.id]?.clouds ?? []).map((cloud) => ({ location, cloud }));
  });
}

/**
 * The place that a request names. `region` has no default, and `cloudId` is required where there are clouds (M: Create
 * body of a volume).
 *
 * @throws {ApiError} VALIDATION_ERROR; PROVIDER_REFUSED while the provider has not told its regions
 */
export function findPlace(
  seller: VolumeSeller,
  { region, cloudId }: { region?: string | undefined; cloudId?: string | undefined },
): VolumePlace {
  const { provider, profile } = seller;
  const name = provider.profile.name;
  if (region === undefined || region === '')
    throw invalid('region', `required for ${name}; GET /api/volumes/regions lists them`);
  if (provider.catalog.heardAt === null)
    throw new ApiError('PROVIDER_REFUSED', `${name} has not told yet where it has volumes; try again later.`);
  const places = volumePlaces(seller);
  const inRegion = places.filter(({ location }) => location.id === region);
  if (inRegion.length === 0)
    throw invalid('region', `expected a region with volumes: ${namesOf(places.map((it) => it.location.id))}`);
  if (!profile.cloud_id) return withoutCloud(inRegion, name, cloudId);
  if (cloudId === undefined)
    throw invalid('cloudId', `required for ${name}; GET /api/volumes/regions lists them`);
  const place = inRegion.find(({ cloud }) => cloud?.id === cloudId);
  if (place === undefined)
    throw invalid(
      'cloudId',
      `expected a cloud of ${region}: ${namesOf(inRegion.map((it) => it.cloud?.id ?? ''))}`,
    );
  return place;
}

function withoutCloud([place]: VolumePlace[], name: string, cloudId: string | undefined): VolumePlace {
  if (cloudId !== undefined) throw invalid('cloudId', `${name} has no clouds to choose from`);
  return place as VolumePlace;
}

function namesOf(names: readonly string[]): string {
  return [...new Set(names)].join(', ') || 'there is none now';
}
