import { z } from 'zod';
import { limitSchema, pageSchema, requestedInstanceTypeSchema, usdPerHourSchema } from './values.ts';

/** M: Offer. The fields that only authenticated requests get are optional. */
export const offerSchema = z
  .object({
    provider: z.string(),
    offerId: z.string().meta({ description: 'Send it as `offerId` of a deployment.' }),
    name: z.string(),
    description: z.string(),
    vcpus: z.number(),
    memory: z.number().meta({ description: 'GB.' }),
    storage: z.number().meta({ description: 'GB.' }),
    gpuCount: z.number().meta({ description: '0 for CPU offers.' }),
    gpu_memory: z.number().meta({ description: 'GB per GPU; 0 for CPU offers.' }),
    price: usdPerHourSchema,
    spot_price: usdPerHourSchema.optional(),
    available: z.boolean(),
    clusters: z.array(z.string()).meta({ description: 'Regions: send the chosen one back unchanged.' }),
    region: z.string().optional(),
    os_options: z.array(z.string()),
    maintenance: z.boolean(),
    interconnectType: z.string(),
    interconnectDescription: z.string(),
    instanceType: z.enum(['SPOT', 'DEDICATED', 'CLUSTER']).meta({
      description: 'Bare metal is DEDICATED with extras.deployment_type baremetal.',
    }),
    supportsCloudInit: z.boolean(),
    extras: z
      .object({ deployment_type: z.enum(['vm', 'baremetal', 'cluster']), networking_type: z.string() })
      .catchall(z.unknown()),
    note: z.string().optional(),
    pauseUnsupportedReason: z.string().nullable(),
    nvlink: z.literal(true).optional(),
    originalPrice: usdPerHourSchema.optional(),
    discountedPrice: usdPerHourSchema.optional(),
    discountPercentage: z.number().optional(),
    hasDiscount: z.boolean().optional(),
  })
  .meta({ id: 'Offer' });
export type Offer = z.infer<typeof offerSchema>;

const IN_STOCK_ONLY = 'Among the offers in stock; omitted where none is in stock.';

/** M: Offer group. */
export const offerGroupSchema = z
  .object({
    gpuType: z.string().meta({ description: '`CPU` for the CPU Node row.' }),
    gpuModel: z.string().meta({ description: 'Empty for CPU.' }),
    baseGpuType: z.string(),
    interconnectVariants: z.array(z.string()),
    hasMultipleVariants: z.boolean(),
    displayName: z.string(),
    popularity: z.number().meta({ description: 'Rank: 1 is the most deployed in the last 30 days.' }),
    totalAvailable: z.number().meta({ description: 'Offers in stock, counted once per region.' }),
    lowestPrice: usdPerHourSchema.optional().meta({ description: IN_STOCK_ONLY }),
    highestPrice: usdPerHourSchema.optional().meta({ description: IN_STOCK_ONLY }),
    averagePrice: usdPerHourSchema.optional().meta({ description: IN_STOCK_ONLY }),
    providers: z.array(z.string()),
    offers: z.array(offerSchema),
  })
  .meta({ id: 'OfferGroup' });
export type OfferGroup = z.infer<typeof offerGroupSchema>;

export const offerPageSchema = z
  .object({
    data: z.array(offerGroupSchema),
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    totalPages: z.int(),
  })
  .meta({ id: 'OfferPage' });
export type OfferPage = z.infer<typeof offerPageSchema>;

export const sortKeys = [
  'popularity',
  'lowestPrice',
  'highestPrice',
  'averagePrice',
  'totalAvailable',
  'displayName',
  'gpuType',
] as const;
export type SortKey = (typeof sortKeys)[number];

/** M: GET /api/gpu-offers, `page` to `computeType`. The use case applies the defaults. */
export const offerQuerySchema = z.object({
  page: pageSchema,
  limit: limitSchema.meta({ description: 'Default 10.' }),
  search: z
    .string()
    .max(255)
    .optional()
    .meta({ description: 'GPU model, type or displayed name; `cpu` gives the CPU row.' }),
  sortBy: z.enum(sortKeys).optional().meta({ description: 'Default popularity.' }),
  sortOrder: z.enum(['asc', 'desc']).optional().meta({ description: 'Default asc.' }),
  instanceType: requestedInstanceTypeSchema.optional(),
  computeType: z.enum(['cpu', 'gpu']).optional().meta({ description: 'Omit for both.' }),
});
export type OfferQuery = z.infer<typeof offerQuerySchema>;

/** M: GET /api/gpu-offers-with-reserved. Without a `limit`, all offers are on one page. */
export const reservedOfferQuerySchema = offerQuerySchema.extend({
  providers: z
    .string()
    .max(4096)
    .transform((text) => text.split(',').map((id) => id.trim()))
    .optional()
    .meta({ type: 'string', description: 'Comma-separated provider ids; default: all.' }),
});
export type ReservedOfferQuery = z.infer<typeof reservedOfferQuerySchema>;
