import { z } from 'zod';
import { regionTokenSchema, usdPerHourSchema } from './values.ts';

export const instanceTypeSchema = z
  .enum(['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER'])
  .meta({ id: 'InstanceType' });
export type InstanceType = z.infer<typeof instanceTypeSchema>;

/** O: Configuration (offer). */
export const configurationSchema = z
  .object({
    id: z.string().min(1).meta({ description: 'Stable unique offer identifier.' }),
    name: z.string().min(1),
    description: z.string().optional(),
    instance_type: instanceTypeSchema,
    vcpus: z.int().positive(),
    memory_gb: z.number().positive().meta({ description: 'System memory, GB.' }),
    storage_gb: z.number().nonnegative().meta({ description: 'Included root storage, GB.' }),
    gpu_count: z.int().nonnegative().optional(),
    gpu_type: z.string().min(1).optional().meta({ description: 'GPU model, consistent across offers.' }),
    gpu_memory_gb: z.number().positive().optional().meta({ description: 'Memory per GPU, GB.' }),
    price_per_hour: usdPerHourSchema,
    spot_price_per_hour: usdPerHourSchema.optional(),
    available: z.boolean().meta({ description: 'Deployable right now.' }),
    regions: z.array(regionTokenSchema).meta({ description: 'Canonical region tokens.' }),
    os_options: z.array(z.string().min(1)).optional().meta({ description: 'Deployable OS images.' }),
    supports_cloud_init: z.boolean().meta({ description: 'Whether cloud_init is honored at create.' }),
    maintenance: z
      .boolean()
      .optional()
      .meta({ description: 'Offer or region temporarily under maintenance.' }),
    extras: z.record(z.string(), z.unknown()).optional().meta({ description: 'Provider-specific metadata.' }),
  })
  .meta({ id: 'Configuration', description: 'A purchasable instance configuration.' });
export type Configuration = z.infer<typeof configurationSchema>;

export const configurationListSchema = z
  .object({ configurations: z.array(configurationSchema) })
  .meta({ id: 'ConfigurationList' });
