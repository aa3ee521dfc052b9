import { z } from 'zod';
import { configurationSchema } from '../../contract/configuration.ts';
import { microUsdFromUsd, regionTokenSchema, usdFromMicroUsd } from '../../contract/values.ts';

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
  /** The platform that has its volumes; left out where all offers of the region are of one. */
  platform: z.string().min(1).max(63).optional(),
});

export const regionFileSchema = z.strictObject({
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

export const offerFileSchema = z.strictObject({
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
  /** Of several platforms in berth.yaml, the one that has the offer's machines. */
  platform: z.string().min(1).max(63).optional(),
  /** How the platform makes them, in the words of its driver. */
  machine: z.record(z.string(), z.json()).default({}),
});
export type OfferFile = z.infer<typeof offerFileSchema>;

export const catalogFileSchema = z.strictObject({
  regions: z.record(regionTokenSchema, regionFileSchema),
  offers: z.array(offerFileSchema).min(1, 'expected at least one offer'),
});
export type CatalogFile = z.infer<typeof catalogFileSchema>;
