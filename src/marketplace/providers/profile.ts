import { z } from 'zod';
import { instanceTypes } from '../contract/values.ts';

// Each field is documented by its `describe`, from which docs/profiles.md is generated.

const minutesSchema = z
  .number()
  .nonnegative()
  .max(60 * 24 * 366);
const priceSchema = z.number().nonnegative().max(1_000_000);
const reasonSchema = z.string().min(1).max(300);

/** What holds for some of a provider's machines. Each condition that is present must match; an absent one matches all. */
const machinesSchema = z.strictObject({
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
  no_stop: reasonSchema
    .optional()
    .describe('They cannot be stopped, and why: a sentence that is shown to users.'),
  no_restart: reasonSchema
    .optional()
    .describe('They cannot be restarted, and why: a sentence that is shown to users.'),
  deploy_timeout_minutes: minutesSchema
    .positive()
    .optional()
    .describe('A deployment that is not running in this time has failed. At least one entry needs it.'),
  minimum_reservation_minutes: minutesSchema
    .optional()
    .describe('Minimum rental; a longer one that the provider announces counts.'),
  stopped_price_per_hour: priceSchema
    .optional()
    .describe(
      'USD per hour while stopped, before discounts, where the provider announces none; 0: a stopped machine costs nothing.',
    ),
  nvlink: z
    .literal(true)
    .optional()
    .describe(
      'Their GPUs are connected by NVLink bridges; they are shown with `nvlink`. With `offers`, without `regions`.',
    ),
});
export type MachineRule = z.infer<typeof machinesSchema>;

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
  clouds: z
    .array(cloudSchema)
    .min(1)
    .optional()
    .describe('The clouds of the region; requests must then give `cloudId`.'),
  virtual_ip: z.string().optional().describe('Shown as `virtualIp`.'),
  nfs_endpoint: z.string().optional().describe('Shown as `nfsEndpoint`, and filled into `mount_command`.'),
});

/** M: Per-provider `volumeIds` rules, Volume rules 3 to 7, Limits. */
const volumesSchema = z.strictObject({
  min_size_gb: z.number().positive().describe('Smallest volume, in GB.'),
  max_size_gb: z.number().positive().describe('Largest volume, in GB.'),
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
  attach_at_create: z.boolean().describe('Whether `deploymentId` may be sent when a volume is created.'),
  no_attach: reasonSchema
    .optional()
    .describe(
      'A volume cannot be attached to a running instance, and why: a sentence that is shown to users.',
    ),
  attach_restarts_instance: z.boolean().default(false).describe('Whether attaching restarts the instance.'),
  no_detach: reasonSchema
    .optional()
    .describe('A user may detach a volume only from an ended deployment, and why.'),
  grow: z.boolean().describe('Whether a volume can be made larger.'),
  rename: z.boolean().describe('Whether a volume can be renamed.'),
  mount_pseudopath: z
    .string()
    .min(1)
    .optional()
    .describe("`{region}` and `{volume}`, the provider's id, are filled in."),
  mount_command: z
    .string()
    .min(1)
    .optional()
    .describe('How users mount a volume over NFS; `{endpoint}` and `{pseudopath}` are filled in too.'),
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
  machines: z
    .array(
      machinesSchema.refine(({ nvlink, offers, regions }) => !nvlink || (offers && !regions), {
        path: ['nvlink'],
        error: 'expected `offers`, and no `regions`, in an entry with nvlink',
      }),
    )
    .refine((rules) => rules.some((rule) => rule.deploy_timeout_minutes !== undefined), {
      error: 'expected an entry with deploy_timeout_minutes',
    })
    .describe('Rules of its machines. Of the entries that match, the first that gives a key counts for it.'),
  volumes: volumesSchema
    .refine((it) => (it.mount_pseudopath === undefined) === (it.mount_command === undefined), {
      path: ['mount_command'],
      error: 'expected both mount_pseudopath and mount_command, or neither',
    })
    .nullable()
    .describe('Capabilities of its volumes; null: no volumes, and a launch with `volumeIds` is refused.'),
});
export type ProviderProfile = z.infer<typeof providerProfileSchema>;
export type VolumeProfile = z.infer<typeof volumesSchema>;

/** Whether the rule of this key is for all machines of the provider. */
export function isOfAll({ machines }: ProviderProfile, key: 'no_stop' | 'no_restart'): boolean {
  return machines.some(
    ({ instance_types, regions, offers, [key]: reason }) =>
      reason !== undefined && (instance_types ?? regions ?? offers) === undefined,
  );
}
