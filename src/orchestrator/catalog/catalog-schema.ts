import { z } from 'zod';
import { configurationSchema, instanceTypeSchema } from '../../contract/configuration.ts';
import { microUsdFromUsd, regionTokenSchema, usdFromMicroUsd } from '../../contract/values.ts';

const MAX_STORAGE_GB = 1_000_000_000;
const MAX_PRICE_USD = 1_000_000;
const MAX_ONLINE_WITHIN_S = 7 * 24 * 3600;
const MAX_RESERVATION_MINUTES = 10 * 366 * 24 * 60;

/** USD as written in the file. More than six decimals are refused, since they would be rounded silently. */
const priceSchema = z
  .number()
  .nonnegative()
  .max(MAX_PRICE_USD)
  .refine((usd) => usdFromMicroUsd(microUsdFromUsd(usd)) === usd, 'expected USD with at most 6 decimals');

const sizeGbSchema = z.number().positive().max(1_000_000);

const volumeTypeFileSchema = z.strictObject({
  name: z.string().min(1).max(63).describe('The name that users request, such as nvme.'),
  price_per_gb_hour: priceSchema.describe('USD per GB and hour.'),
  min_size_gb: sizeGbSchema.describe('The smallest volume.'),
  max_size_gb: sizeGbSchema.describe('The largest volume.'),
  shareable: z.boolean().default(false).describe('Whether it can be attached to several machines at once.'),
  platform: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe(
      'The platform in berth.yaml that holds its volumes; required if offers of the region use several platforms.',
    ),
});

export const regionFileSchema = z.strictObject({
  name: z.string().min(1).max(255).describe('Display name, such as Frankfurt, Germany.'),
  country_code: z
    .string()
    .regex(/^[A-Z]{2}$/, 'expected two capital letters (ISO 3166-1 alpha-2), such as "DE"')
    .optional()
    .describe('ISO 3166-1 alpha-2, such as DE.'),
  datacenter: z
    .string()
    .min(2)
    .max(255)
    .describe("The platform's code for the region. The API never shows it."),
  drained: z.boolean().default(false).describe('Running machines stay; nothing new is placed.'),
  maintenance: z
    .boolean()
    .default(false)
    .describe('The region is shown as under maintenance, and nothing new is placed.'),
  volume_types: z
    .array(volumeTypeFileSchema)
    .default([])
    .describe('The volume types sold there. Empty: none.'),
  storage_capacity_gb: z
    .number()
    .nonnegative()
    .max(MAX_STORAGE_GB)
    .optional()
    .describe('Total GB of all volumes there. Absent: no limit.'),
});
export type RegionFile = z.infer<typeof regionFileSchema>;

const { shape: contract } = configurationSchema;

export const offerFileSchema = z.strictObject({
  instance_type: z.enum(instanceTypeSchema.enum).describe('The kind of machine.'),
  vcpus: contract.vcpus.describe('Virtual CPUs.'),
  memory_gb: contract.memory_gb,
  storage_gb: contract.storage_gb,
  gpu_count: contract.gpu_count.describe('Number of GPUs.'),
  gpu_type: contract.gpu_type,
  gpu_memory_gb: contract.gpu_memory_gb,
  supports_cloud_init: contract.supports_cloud_init,
  id: z
    .string()
    .max(255)
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      'expected letters, digits, ".", "_" and "-", such as "h100-sxm-8x"',
    )
    .describe('The offer that users create instances of. Never reuse an id for a different machine.'),
  name: z.string().min(1).max(255).describe('For people.'),
  description: z.string().min(1).max(4096).optional().describe('For people.'),
  price_per_hour: priceSchema.describe('USD per hour, with at most six decimals.'),
  spot_price_per_hour: priceSchema
    .optional()
    .describe('USD per hour as a spot machine, with at most six decimals.'),
  os_options: z
    .array(z.string().min(1).max(255))
    .min(1, 'expected at least one image: the first is the default')
    .describe('Available images. The first is the default.'),
  maintenance: z.boolean().default(false).describe('Shown as under maintenance and not sold.'),
  root_disk: z
    .strictObject({
      min_gb: sizeGbSchema.describe('The smallest.'),
      max_gb: sizeGbSchema.describe('The largest.'),
    })
    .optional()
    .describe('Allowed sizes of the root disk. Absent: storage_gb only.'),
  on_stop: z
    .enum(['release', 'hold'])
    .default('release')
    .describe(
      'Whether a stopped machine keeps its unit. With `release`, a later start may be refused as sold out.',
    ),
  resumable: z.boolean().default(true).describe('Whether a stopped machine can be started again.'),
  restartable: z.boolean().default(true).describe('Whether it can be restarted: announced in extras.berth.'),
  stopped_price_per_hour: priceSchema
    .optional()
    .describe('USD per hour while stopped: announced in extras.berth.'),
  minimum_reservation_minutes: z
    .int()
    .nonnegative()
    .max(MAX_RESERVATION_MINUTES)
    .optional()
    .describe('The minimum rental: announced in extras.berth.'),
  online_within_s: z
    .int()
    .positive()
    .max(MAX_ONLINE_WITHIN_S)
    .default(600)
    .describe('A machine that is not ONLINE within this time after its create goes to ERROR.'),
  capacity: z
    .record(z.string(), z.int().nonnegative())
    .describe('Units in each region, including those sold.'),
  extras: z
    .record(z.string(), z.json())
    .optional()
    .describe('Passed through unchanged, next to what Berth announces in extras.berth.'),
  platform: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('The platform in berth.yaml that runs its machines; required if there are several.'),
  machine: z
    .record(z.string(), z.json())
    .default({})
    .describe('How the platform creates them: settings of its driver.'),
});
export type OfferFile = z.infer<typeof offerFileSchema>;

export const catalogFileSchema = z.strictObject({
  regions: z
    .record(regionTokenSchema, regionFileSchema)
    .describe('Regions by public token, such as eu-frankfurt.'),
  offers: z.array(offerFileSchema).min(1, 'expected at least one offer').describe('The offers for sale.'),
});
export type CatalogFile = z.infer<typeof catalogFileSchema>;
