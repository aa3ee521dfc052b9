import type { VolumeLocation } from '../../contract/volume.ts';
import type { Catalog, VolumeType } from '../catalog/catalog.ts';

/** O: GET /volumes/locations: the regions that sell volumes, under the tokens of `Configuration.regions`. */
export function listVolumeLocations(catalog: Catalog): VolumeLocation[] {
  return [...catalog.regions.values()]
    .filter((region) => region.volumeTypes.length > 0)
    .map(({ token, name, volumeTypes, countryCode }) => ({
      id: token,
      name,
      types: volumeTypes.map((type) => type.name),
      ...(countryCode !== undefined && { country_code: countryCode }),
    }));
}

export function findVolumeType(
  catalog: Catalog,
  region: string,
  name: string | null,
): VolumeType | undefined {
  return catalog.regions.get(region)?.volumeTypes.find((type) => type.name === name);
}
