import { z } from 'zod';
import { instanceTypes } from '../contract/values.ts';

// Each field is documented by its `describe`, from which docs/profiles.md is generated.

const minutesSchema = z
  .number()
  .nonnegative()
  .max(60 * 24 * 366)
  .describe('Minutes.');
const priceSchema = z.number().nonnegative().max(1_000_000);
const reasonSchema = z.string().min(1).max(300).describe('A sentence that is shown to users.');

/** A selection of a provider's machines. Each part that is present must match; an absent part matches all. */
const selectionSchema = z.strictObject({
  instance_types: z
    .array(z.enum(instanceTypes))
    .min(1)
    .optional()
    .describe('Only machines of these types; absent: all types.'),
  regions: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe('Only in these regions; absent: all regions.'),
  offers: z.array(z.string().min(1)).min(1).optional().describe('Only these offers; absent: all offers.'),
});
export type Selection = z.infer<typeof selectionSchema>;

/** Whether the machines support an action, and the exceptions. `reason` is shown to users. */
const actionSchema = z.discriminatedUnion('supported', [
  z.strictObject({
    supported: z.literal(false).describe('`false`: `reason` says why.'),
    reason: reasonSchema,
  }),
  z.strictObject({
    supported: z.literal(true).describe('`false`: `reason` says why.'),
    except: z
      .array(selectionSchema.extend({ reason: reasonSchema }))
      .default([])
      .describe('Machines that do not support it. Every given condition must match.'),
  }),
]);

const instancesSchema = z.strictObject({
  stop: actionSchema.describe('Whether machines can be stopped.'),
  restart: actionSchema.describe('Whether machines can be restarted.'),
  deploy_timeouts: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        minutes: minutesSchema.positive().describe('Deploy timeout in minutes.'),
      }),
    )
    .min(1)
    .describe(
      'Deploy timeouts: a deployment that is not running in time has failed. The first matching entry counts.',
    ),
  minimum_reservations: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        minutes: minutesSchema.describe('Minimum rental in minutes.'),
      }),
    )
    .default([])
    .describe('Minimum rentals, in addition to those that the provider announces; the longest counts.'),
  stopped_prices: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        stopped_price_per_hour: priceSchema.describe('USD per hour; 0: a stopped machine costs nothing.'),
      }),
    )
    .default([])
    .describe(
      'Prices of stopped machines, before discounts, where the provider announces none. The first matching entry counts.',
    ),
  nvlink_offers: z
    .array(z.string().min(1))
    .default([])
    .describe('Offers whose GPUs are connected by NVLink bridges; they are shown with `nvlink`.'),
});

const cloudSchema = z.strictObject({
  id: z.string().min(1).describe('The value of `cloudId` in requests.'),
  name: z.string().min(1).describe('Shown as `cloudName`.'),
  type: z.string().min(1).optional().describe('Volume type in this cloud; absent: the default.'),
  price_per_gb_hour: priceSchema
    .optional()
    .describe('USD per GB and hour in this cloud; absent: the price of the region.'),
});

const volumeRegionSchema = z.strictObject({
  min_size_gb: z.number().positive().optional().describe('Smallest volume in this region, in GB.'),
  max_size_gb: z.number().positive().optional().describe('Largest volume in this region, in GB.'),
  price_per_gb_hour: priceSchema
    .optional()
    .describe('USD per GB and hour in this region; absent: the default price.'),
  clouds: z.array(cloudSchema).min(1).optional().describe('The clouds of the region.'),
  virtual_ip: z.string().optional().describe('Shown as `virtualIp`.'),
  nfs_endpoint: z.string().optional().describe('Shown as `nfsEndpoint`, and filled into `mount`.'),
});

/** M: Per-provider `volumeIds` rules, Volume rules 3 to 7, Limits. */
const volumesSchema = z.strictObject({
  size_gb: z
    .strictObject({
      min: z.number().positive().describe('The smallest volume, in GB.'),
      max: z.number().positive().describe('The largest volume, in GB.'),
    })
    .describe('Size limits of a volume.'),
  price_per_gb_hour: priceSchema.describe('USD per GB and hour, before discounts; users pay this.'),
  name_max_length: z.int().positive().max(60).describe('Maximum length of a volume name, in characters.'),
  type: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Volume type in create requests, shown as `extras.volumeType`; absent: the provider's default.",
    ),
  max_per_instance: z
    .int()
    .positive()
    .nullable()
    .describe('Maximum number of volumes on one instance; null: no limit.'),
  shareable: z.boolean().describe('Whether a volume may be attached to several instances.'),
  cloud_id: z
    .boolean()
    .default(false)
    .describe('Whether regions have several clouds, so that requests must give `cloudId`.'),
  attach_at_create: z.boolean().describe('Whether `deploymentId` may be sent when a volume is created.'),
  attach: z
    .discriminatedUnion('supported', [
      z.strictObject({
        supported: z.literal(false).describe('`false`: `reason` says why.'),
        reason: reasonSchema,
      }),
      z.strictObject({
        supported: z.literal(true).describe('`false`: `reason` says why.'),
        restarts_instance: z.boolean().default(false).describe('Whether attaching restarts the instance.'),
      }),
    ])
    .describe('Whether a volume can be attached to a running instance.'),
  detach: z
    .strictObject({
      allowed: z.enum(['always', 'ended']).describe('`ended`: only from an ended deployment.'),
      reason: reasonSchema.optional(),
    })
    .describe('When a user may detach a volume.'),
  grow: z.boolean().describe('Whether a volume can be made larger.'),
  rename: z.boolean().describe('Whether a volume can be renamed.'),
  mount: z
    .strictObject({
      pseudopath: z.string().min(1).describe("`{region}` and `{volume}`, the provider's id, are filled in."),
      command: z.string().min(1).describe('Also `{endpoint}` and `{pseudopath}` are filled in.'),
    })
    .optional()
    .describe('How users mount a volume over NFS.'),
  regions: z
    .record(z.string(), volumeRegionSchema)
    .default({})
    .describe('Settings that differ in a region, by region id.'),
});

/** Schema of `fixtures/providers/*.yaml`: all rules of M: for one provider. No code branches on a provider's id. */
export const providerProfileSchema = z.strictObject({
  id: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "provider-a"')
    .describe('Id of the provider in requests.'),
  name: z.string().min(1).max(255).describe('Name in texts for users.'),
  instances: instancesSchema.describe('Capabilities of its machines.'),
  volumes: volumesSchema
    .nullable()
    .describe('Capabilities of its volumes; null: no volumes, and a launch with `volumeIds` is refused.'),
  notes: z.array(reasonSchema).default([]).describe('Notes for docs/providers.md; no rule checks them.'),
});
export type ProviderProfile = z.infer<typeof providerProfileSchema>;
export type VolumeProfile = z.infer<typeof volumesSchema>;
