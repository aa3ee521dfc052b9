import { z } from 'zod';
import { instanceTypes } from '../contract/values.ts';

const minutesSchema = z
  .number()
  .nonnegative()
  .max(60 * 24 * 366);
const priceSchema = z.number().nonnegative().max(1_000_000);
const reasonSchema = z.string().min(1).max(300);

/** Some of a provider's machines: each part that is there must fit, and what is absent fits all. */
const selectionSchema = z.strictObject({
  instance_types: z.array(z.enum(instanceTypes)).min(1).optional(),
  regions: z.array(z.string().min(1)).min(1).optional(),
  offers: z.array(z.string().min(1)).min(1).optional(),
});
export type Selection = z.infer<typeof selectionSchema>;

/** Whether the machines can do something, and which of them cannot. `reason` is shown to users. */
const actionSchema = z.discriminatedUnion('supported', [
  z.strictObject({ supported: z.literal(false), reason: reasonSchema }),
  z.strictObject({
    supported: z.literal(true),
    except: z.array(selectionSchema.extend({ reason: reasonSchema })).default([]),
  }),
]);

const instancesSchema = z.strictObject({
  stop: actionSchema,
  restart: actionSchema,
  /** A deployment that is not running by then has failed. The first that fits counts. */
  deploy_timeouts: z
    .array(z.strictObject({ ...selectionSchema.shape, minutes: minutesSchema.positive() }))
    .min(1),
  /** Beside what the provider announces itself; the longest counts. */
  minimum_reservations: z
    .array(z.strictObject({ ...selectionSchema.shape, minutes: minutesSchema }))
    .default([]),
  /** Offers whose GPUs are joined by NVLink bridges (M: Offer, `nvlink`). */
  nvlink_offers: z.array(z.string().min(1)).default([]),
});

const cloudSchema = z.strictObject({
  id: z.string().min(1),
  name: z.string().min(1),
  /** What is asked of the provider for a volume in this cloud; absent: as elsewhere. */
  type: z.string().min(1).optional(),
  price_per_gb_hour: priceSchema.optional(),
});

const volumeRegionSchema = z.strictObject({
  min_size_gb: z.number().positive().optional(),
  max_size_gb: z.number().positive().optional(),
  price_per_gb_hour: priceSchema.optional(),
  clouds: z.array(cloudSchema).min(1).optional(),
  virtual_ip: z.string().optional(),
  nfs_endpoint: z.string().optional(),
});

/** M: Per-provider `volumeIds` rules, Volume rules 3 to 7, Limits. */
const volumesSchema = z.strictObject({
  size_gb: z.strictObject({ min: z.number().positive(), max: z.number().positive() }),
  price_per_gb_hour: priceSchema,
  name_max_length: z.int().positive().max(60),
  /** What is asked of the provider, and shown as `extras.volumeType`; absent: the provider's default. */
  type: z.string().min(1).optional(),
  /** Volumes on one instance; null: several, without a number. */
  max_per_instance: z.int().positive().nullable(),
  /** Whether one volume may be on several instances. */
  shareable: z.boolean(),
  /** Whether a region has several clouds, one of which must be named. */
  cloud_id: z.boolean().default(false),
  /** Whether `deploymentId` may be sent when a volume is created. */
  attach_at_create: z.boolean(),
  attach: z.discriminatedUnion('supported', [
    z.strictObject({ supported: z.literal(false), reason: reasonSchema }),
    z.strictObject({ supported: z.literal(true), restarts_instance: z.boolean().default(false) }),
  ]),
  /** `ended`: only from a deployment that is over. */
  detach: z.strictObject({ allowed: z.enum(['always', 'ended']), reason: reasonSchema.optional() }),
  grow: z.boolean(),
  rename: z.boolean(),
  /**
   * Where the volume is mounted from. `{region}` and `{volume}`, the provider's id, are filled in; in `command`
   * also `{endpoint}` and `{pseudopath}`.
   */
  mount: z.strictObject({ pseudopath: z.string().min(1), command: z.string().min(1) }).optional(),
  regions: z.record(z.string(), volumeRegionSchema).default({}),
});

/** `fixtures/providers/*.yaml`: all that M: says of one provider. Nothing about a provider is an `if` in code. */
export const providerProfileSchema = z.strictObject({
  id: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'expected lower-case words joined by "-", such as "provider-a"'),
  name: z.string().min(1).max(255),
  instances: instancesSchema,
  /** Null: volumes are unavailable, and a request with `volumeIds` is rejected. */
  volumes: volumesSchema.nullable(),
  /** What M: says of it and no rule checks: for docs/providers.md. */
  notes: z.array(reasonSchema).default([]),
});
export type ProviderProfile = z.infer<typeof providerProfileSchema>;
export type VolumeProfile = z.infer<typeof volumesSchema>;
