import type { z } from 'zod';
import { PARSED_ONCE } from '../../contract/parse-once.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import { DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import type { Catalog, Offer, Region } from './catalog.ts';
import { crossCheck } from './catalog-checks.ts';
import {
  type CatalogFile,
  catalogFileSchema,
  type OfferFile,
  offerFileSchema,
  type RegionFile,
  regionFileSchema,
} from './catalog-schema.ts';

/**
 * Reads a catalog file: the offers and regions of the provider. Unknown keys are errors. Returns all issues at once. An
 * issue about a key, not its value, has `params: { at: 'key' }`.
 */
export function parseCatalogFile(raw: unknown): { file: CatalogFile } | { issues: z.core.$ZodIssue[] } {
  const parsed = catalogFileSchema.safeParse(raw, PARSED_ONCE);
  const contradictions = crossCheck(wellFormedPartsOf(raw)).map((issue) => ({ ...issue, input: undefined }));
  const issues = [...(parsed.error?.issues ?? []), ...contradictions];
  return parsed.success && issues.length === 0 ? { file: parsed.data } : { issues };
}

/** The well-formed parts, so that one malformed offer does not hide the issues of another. */
export function wellFormedPartsOf(file: unknown): Parameters<typeof crossCheck>[0] {
  const { regions, offers } = (file ?? {}) as { regions?: unknown; offers?: unknown };
  const regionEntries = typeof regions === 'object' && regions !== null ? Object.entries(regions) : [];
  return {
    knownTokens: new Set(regionEntries.map(([token]) => token)),
    regions: regionEntries.flatMap(([token, value]) => {
      const region = regionFileSchema.safeParse(value, PARSED_ONCE);
      return region.success ? [{ token, region: region.data }] : [];
    }),
    offers: (Array.isArray(offers) ? offers : []).flatMap((value, index) => {
      const offer = offerFileSchema.safeParse(value, PARSED_ONCE);
      return offer.success ? [{ index, offer: offer.data }] : [];
    }),
  };
}

/**
 * The catalog in the orchestrator's form: camelCase, money in integer micro-USD, times in ms. `platform`: the default
 * for parts that do not name one.
 */
export function toCatalog(file: CatalogFile, platform: string = DEFAULT_PLATFORM): Catalog {
  const offers = file.offers.map((offer) => toOffer(offer, platform));
  const regions = Object.entries(file.regions).map(([token, region]) => {
    const [usual = platform] = platformsIn(token, file.offers, platform);
    return toRegion(token, region, usual);
  });
  return {
    regions: new Map(regions.map((region) => [region.token, region])),
    offers: new Map(offers.map((offer) => [offer.id, offer])),
  };
}

/** The platforms of the offers in a region. `usual`: the default platform. */
export function platformsIn(
  token: string,
  offers: readonly Pick<OfferFile, 'capacity' | 'platform'>[],
  usual: string,
): Set<string> {
  const here = offers.filter(({ capacity }) => Object.hasOwn(capacity, token));
  return new Set(here.map(({ platform = usual }) => platform));
}

function toRegion(token: string, region: RegionFile, platform: string): Region {
  return {
    token,
    name: region.name,
    countryCode: region.country_code,
    datacenter: region.datacenter,
    drained: region.drained,
    maintenance: region.maintenance,
    storageGb: region.storage_capacity_gb,
    volumeTypes: region.volume_types.map((type) => ({
      name: type.name,
      priceMicroUsdPerGbHour: microUsdFromUsd(type.price_per_gb_hour),
      minSizeGb: type.min_size_gb,
      maxSizeGb: type.max_size_gb,
      shareable: type.shareable,
      platform: type.platform ?? platform,
    })),
  };
}

function toOffer(offer: OfferFile, platform: string): Offer {
  return {
    id: offer.id,
    name: offer.name,
    description: offer.description,
    instanceType: offer.instance_type,
    vcpus: offer.vcpus,
    memoryGb: offer.memory_gb,
    storageGb: offer.storage_gb,
    gpuCount: offer.gpu_count,
    gpuType: offer.gpu_type,
    gpuMemoryGb: offer.gpu_memory_gb,
    priceMicroUsdPerHour: microUsdFromUsd(offer.price_per_hour),
    spotPriceMicroUsdPerHour:
      offer.spot_price_per_hour === undefined ? undefined : microUsdFromUsd(offer.spot_price_per_hour),
    placements: Object.entries(offer.capacity).map(([region, units]) => ({ region, units })),
    osOptions: offer.os_options,
    supportsCloudInit: offer.supports_cloud_init,
    maintenance: offer.maintenance,
    rootDisk: offer.root_disk && { minGb: offer.root_disk.min_gb, maxGb: offer.root_disk.max_gb },
    onStop: offer.on_stop,
    resumable: offer.resumable,
    restartable: offer.restartable,
    stoppedPriceMicroUsdPerHour:
      offer.stopped_price_per_hour === undefined ? undefined : microUsdFromUsd(offer.stopped_price_per_hour),
    minimumReservationMinutes: offer.minimum_reservation_minutes,
    onlineWithinMs: offer.online_within_s * 1000,
    extras: offer.extras,
    platform: offer.platform ?? platform,
    machine: offer.machine,
  };
}
