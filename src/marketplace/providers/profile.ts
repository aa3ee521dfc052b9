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
    .describe('Only machines of these types; absent: of all.'),
  regions: z.array(z.string().min(1)).min(1).optional().describe('Only in these regions; absent: in all.'),
  offers: z.array(z.string().min(1)).min(1).optional().describe('Only of these offers; absent: of all.'),
});
export type Selection = z.infer<typeof selectionSchema>;

/** Whether the machines support an action, and which do not. `reason` is shown to users. */
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
      .describe('Those that cannot. Each part that is there must fit.'),
  }),
]);

const instancesSchema = z.strictObject({
  stop: actionSchema.describe('Whether machines can be stopped.'),
  restart: actionSchema.describe('Whether machines can be restarted.'),
  deploy_timeouts: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        minutes: minutesSchema.positive().describe('After so many minutes it has failed.'),
      }),
    )
    .min(1)
    .describe('A deployment that is not running by then has failed. The first that fits counts.'),
  minimum_reservations: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        minutes: minutesSchema.describe('For so many minutes at least it is rented out.'),
      }),
    )
    .default([])
    .describe('Minimum rentals, beside what the provider announces itself; the longest counts.'),
  stopped_prices: z
    .array(
      z.strictObject({
        ...selectionSchema.shape,
        stopped_price_per_hour: priceSchema.describe('USD per hour; 0: a stopped machine costs nothing.'),
      }),
    )
    .default([])
    .describe(
      'What a stopped machine costs, before discounts, where the provider announces nothing. The first that fits counts.',
    ),
  nvlink_offers: z
    .array(z.string().min(1))
    .default([])
    .describe('Offers whose GPUs are joined by NVLink bridges: they are shown with `nvlink`.'),
});

const cloudSchema = z.strictObject({
  id: z.string().min(1).describe('What users send as `cloudId`.'),
  name: z.string().min(1).describe('Shown as `cloudName`.'),
  type: z
    .string()
    .min(1)
    .optional()
    .describe('The volume type to ask for in this cloud; absent: as elsewhere.'),
  price_per_gb_hour: priceSchema.optional().describe('USD per GB and hour here; absent: as in the region.'),
});

const volumeRegionSchema = z.strictObject({
  min_size_gb: z.number().positive().optional().describe('The smallest volume here, in GB.'),
  max_size_gb: z.number().positive().optional().describe('The largest volume here, in GB.'),
  price_per_gb_hour: priceSchema.optional().describe('USD per GB and hour here; absent: as elsewhere.'),
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
    .describe('How large a volume may be.'),
  price_per_gb_hour: priceSchema.describe('USD per GB and hour, before discounts; users pay this.'),
  name_max_length: z.int().positive().max(60).describe('The longest name of a volume, in characters.'),
  type: z
    .string()
    .min(1)
    .optional()
    .describe("The type to ask for, shown as `extras.volumeType`; absent: the provider's default."),
  max_per_instance: z
    .int()
    .positive()
    .nullable()
    .describe('Volumes on one instance at most; null: any number.'),
  shareable: z.boolean().describe('Whether one volume may be on several instances.'),
  cloud_id: z
    .boolean()
    .default(false)
    .describe('Whether a region has several clouds, one of which must be named.'),
  attach_at_create: z.boolean().describe('Whether `deploymentId` may be sent when a volume is created.'),
  attach: z
    .discriminatedUnion('supported', [
      z.strictObject({
        supported: z.literal(false).describe('`false`: `reason` says why.'),
        reason: reasonSchema,
      }),
      z.strictObject({
        supported: z.literal(true).describe('`false`: `reason` says why.'),
        restarts_instance: z.boolean().default(false).describe('Whether that restarts the instance.'),
      }),
    ])
    .describe('Whether a volume can be attached to an instance that runs.'),
  detach: z
    .strictObject({
      allowed: z.enum(['always', 'ended']).describe('`ended`: only from a deployment that is over.'),
      reason: reasonSchema.optional(),
    })
    .describe('When a volume can be detached by hand.'),
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
    .describe('What is different in a region, by its id.'),
});

/** Schema of `fixtures/providers/*.yaml`: all rules of M: for one provider. No code branches on a provider's id. */
export const providerProfileSchema = z.strictObject({
  id: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "provider-a"')
    .describe('What users name the provider by.'),
  name: z.string().min(1).max(255).describe('The name in texts for users.'),
  instances: instancesSchema.describe('What its machines can do.'),
  volumes: volumesSchema
    .nullable()
    .describe('What its volumes can do; null: it has none, and a launch with `volumeIds` is refused.'),
  notes: z.array(reasonSchema).default([]).describe('What no rule checks: for docs/providers.md.'),
});
export type ProviderProfile = z.infer<typeof providerProfileSchema>;
export type VolumeProfile = z.infer<typeof volumesSchema>;
