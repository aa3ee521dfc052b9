import type { z } from 'zod';
import type { InstanceType } from '../../contract/configuration.ts';
import { PARSED_ONCE } from '../../contract/parse-once.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { DriverManifest, Manifests } from '../model/platform-driver.ts';
import { DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import { crossCheck } from './catalog-checks.ts';
import {
  type CatalogFile,
  catalogFileSchema,
  type OfferFile,
  offerFileSchema,
  type RegionFile,
  regionFileSchema,
} from './catalog-schema.ts';

export { DEFAULT_PLATFORM } from '../model/platform-resource.ts';

/** A place where machines are sold. `datacenter` is the platform's code for it and is never sent to clients. */
export interface Region {
  token: string;
  name: string;
  countryCode: string | undefined;
  datacenter: string;
  /** Whether nothing new is placed here. */
  drained: boolean;
  maintenance: boolean;
  /** Volume types sold here. Empty if the region has no volumes. */
  volumeTypes: readonly VolumeType[];
  /** GB that all volumes of the region together may take. Undefined for no limit. */
  storageGb: number | undefined;
}

export interface VolumeType {
  name: string;
  priceMicroUsdPerGbHour: number;
  minSizeGb: number;
  maxSizeGb: number;
  /** Whether several instances may have it attached at once. */
  shareable: boolean;
  /** The name of the platform that has its volumes. They attach only to instances of that platform. */
  platform: string;
}

export interface Placement {
  region: string;
  /** Units of this offer in the region, including sold ones. */
  units: number;
}

export interface Offer {
  id: string;
  /** The platform that has its machines, by its name in berth.yaml. */
  platform: string;
  /**
   * How the platform makes the machines: host group, image, flavour, port pool. The driver's `offerSchema` parses it.
   */
  machine: Readonly<Record<string, unknown>>;
  name: string;
  description: string | undefined;
  instanceType: InstanceType;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  gpuCount: number | undefined;
  gpuType: string | undefined;
  gpuMemoryGb: number | undefined;
  priceMicroUsdPerHour: number;
  spotPriceMicroUsdPerHour: number | undefined;
  placements: readonly Placement[];
  /** The first is the default. */
  osOptions: readonly string[];
  supportsCloudInit: boolean;
  maintenance: boolean;
  /** The root disk sizes that a create may request. Undefined if the size is fixed at `storageGb`. */
  rootDisk: { minGb: number; maxGb: number } | undefined;
  /** Whether a stopped instance keeps its unit. */
  onStop: 'release' | 'hold';
  /** Whether a stopped instance can be started again (O: Instances, rule 4). */
  resumable: boolean;
  /** Whether an ONLINE instance can be restarted, if the platform supports it. */
  restartable: boolean;
  /**
   * The price of a stopped instance. Undefined if it is not stated. Berth announces it; the billing system charges it.
   */
  stoppedPriceMicroUsdPerHour: number | undefined;
  /** The shortest rental. Undefined if it is not stated. */
  minimumReservationMinutes: number | undefined;
  /** How long a create or a start may take to reach ONLINE (O: Limits; longer for bare metal). */
  onlineWithinMs: number;
  extras: Readonly<Record<string, unknown>> | undefined;
}

/** The offers and regions of this provider. A reload replaces both maps together, so read them at each use. */
export interface Catalog {
  regions: ReadonlyMap<string, Region>;
  offers: ReadonlyMap<string, Offer>;
}

/** The catalog, and the capabilities of the platforms. */
export interface Offering {
  catalog: Catalog;
  manifests: Manifests;
}

/** The catalog with only the offers of one platform. It follows reloads. */
export function catalogOf(catalog: Catalog, platform: string): Catalog {
  let all: Catalog['offers'] | undefined;
  let own: Catalog['offers'] = new Map();
  return {
    get regions() {
      return catalog.regions;
    },
    get offers() {
      if (catalog.offers !== all)
        own = new Map([...catalog.offers].filter(([, offer]) => offer.platform === platform));
      all = catalog.offers;
      return own;
    },
  };
}

/** The current price of an instance of the offer: the spot price for SPOT offers. */
export function effectivePriceMicroUsdPerHour(offer: Offer): number {
  return offer.instanceType === 'SPOT'
    ? (offer.spotPriceMicroUsdPerHour ?? offer.priceMicroUsdPerHour)
    : offer.priceMicroUsdPerHour;
}

/** Whether a create of the offer may have `cloud_init` on this platform. */
export function canCloudInit(manifest: DriverManifest, offer: Offer): boolean {
  return offer.supportsCloudInit && manifest.cloudInitBytes > 0;
}

/** Whether machines of the offer or instance can be restarted on this platform. */
export function canRestart(
  manifest: DriverManifest,
  { restartable = true }: { restartable?: boolean },
): boolean {
  return manifest.restart && restartable;
}

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
