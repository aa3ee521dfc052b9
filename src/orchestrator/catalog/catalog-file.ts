import { z } from 'zod';
import { configurationSchema } from '../../contract/configuration.ts';
import { microUsdFromUsd, regionTokenSchema, usdFromMicroUsd } from '../../contract/values.ts';
import type { Catalog, Offer, Region } from './catalog.ts';
import { crossCheck } from './catalog-checks.ts';

const MAX_STORAGE_GB = 1_000_000_000;
const MAX_PRICE_USD = 1_000_000;
const MAX_ONLINE_WITHIN_S = 7 * 24 * 3600;
const MAX_RESERVATION_MINUTES = 10 * 366 * 24 * 60;

/** USD as written in the file. More than six decimals would be rounded in silence. */
const priceSchema = z
  .number()
  .nonnegative()
  .max(MAX_PRICE_USD)
  .refine((usd) => usdFromMicroUsd(microUsdFromUsd(usd)) === usd, 'expected USD with at most 6 decimals');

const sizeGbSchema = z.number().positive().max(1_000_000);

const volumeTypeFileSchema = z.strictObject({
  name: z.string().min(1).max(63),
  price_per_gb_hour: priceSchema,
  min_size_gb: sizeGbSchema,
  max_size_gb: sizeGbSchema,
  shareable: z.boolean().default(false),
});

const regionFileSchema = z.strictObject({
  name: z.string().min(1).max(255),
  country_code: z
    .string()
    .regex(/^[A-Z]{2}$/, 'expected two capital letters (ISO 3166-1 alpha-2), such as "DE"')
    .optional(),
  datacenter: z.string().min(2).max(255),
  drained: z.boolean().default(false),
  maintenance: z.boolean().default(false),
  volume_types: z.array(volumeTypeFileSchema).default([]),
  storage_capacity_gb: z.number().nonnegative().max(MAX_STORAGE_GB).optional(),
});
export type RegionFile = z.infer<typeof regionFileSchema>;

const offerFileSchema = z.strictObject({
  ...configurationSchema.pick({
    instance_type: true,
    vcpus: true,
    memory_gb: true,
    storage_gb: true,
    gpu_count: true,
    gpu_type: true,
    gpu_memory_gb: true,
    supports_cloud_init: true,
  }).shape,
  id: z
    .string()
    .max(255)
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      'expected letters, digits, ".", "_" and "-", such as "h100-sxm-8x"',
    ),
  name: z.string().min(1).max(255),
  description: z.string().min(1).max(4096).optional(),
  price_per_hour: priceSchema,
  spot_price_per_hour: priceSchema.optional(),
  os_options: z
    .array(z.string().min(1).max(255))
    .min(1, 'expected at least one image: the first is the default'),
  maintenance: z.boolean().default(false),
  root_disk: z.strictObject({ min_gb: sizeGbSchema, max_gb: sizeGbSchema }).optional(),
  on_stop: z.enum(['release', 'hold']).default('release'),
  resumable: z.boolean().default(true),
  restartable: z.boolean().default(true),
  stopped_price_per_hour: priceSchema.optional(),
  minimum_reservation_minutes: z.int().nonnegative().max(MAX_RESERVATION_MINUTES).optional(),
  online_within_s: z.int().positive().max(MAX_ONLINE_WITHIN_S).default(600),
  capacity: z.record(z.string(), z.int().nonnegative()),
  extras: z.record(z.string(), z.json()).optional(),
});
export type OfferFile = z.infer<typeof offerFileSchema>;

const catalogFileSchema = z.strictObject({
  regions: z.record(regionTokenSchema, regionFileSchema),
  offers: z.array(offerFileSchema).min(1, 'expected at least one offer'),
});
export type CatalogFile = z.infer<typeof catalogFileSchema>;

/**
 * Reads a catalog file: what the provider sells, and where. Unknown keys are errors. All that is wrong
 * is told at once; an issue that is about a key and not about its value carries `params: { at: 'key' }`.
 */
export function parseCatalogFile(raw: unknown): { file: CatalogFile } | { issues: z.core.$ZodIssue[] } {
  const parsed = catalogFileSchema.safeParse(raw);
  const contradictions = crossCheck(wellFormedPartsOf(raw)).map((issue) => ({ ...issue, input: undefined }));
  const issues = [...(parsed.error?.issues ?? []), ...contradictions];
  return parsed.success && issues.length === 0 ? { file: parsed.data } : { issues };
}

/** The parts whose shape is right, so that one bad offer does not hide what is wrong with another. */
function wellFormedPartsOf(file: unknown): Parameters<typeof crossCheck>[0] {
  const { regions, offers } = (file ?? {}) as { regions?: unknown; offers?: unknown };
  const regionEntries = typeof regions === 'object' && regions !== null ? Object.entries(regions) : [];
  return {
    knownTokens: new Set(regionEntries.map(([token]) => token)),
    regions: regionEntries.flatMap(([token, value]) => {
      const region = regionFileSchema.safeParse(value);
      return region.success ? [{ token, region: region.data }] : [];
    }),
    offers: (Array.isArray(offers) ? offers : []).flatMap((value, index) => {
      const offer = offerFileSchema.safeParse(value);
      return offer.success ? [{ index, offer: offer.data }] : [];
    }),
  };
}

/** The catalog as the orchestrator uses it: camelCase, money in integer micro-USD, times in ms. */
export function toCatalog(file: CatalogFile): Catalog {
  const regions = Object.entries(file.regions).map(([token, region]) => toRegion(token, region));
  const offers = file.offers.map(toOffer);
  return {
    regions: new Map(regions.map((region) => [region.token, region])),
    offers: new Map(offers.map((offer) => [offer.id, offer])),
  };
}

function toRegion(token: string, region: RegionFile): Region {
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
    })),
  };
}

function toOffer(offer: OfferFile): Offer {
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
  };
}
