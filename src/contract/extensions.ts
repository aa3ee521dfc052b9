import { z } from 'zod';
import { regionTokenSchema, timestampSchema, usdPerHourSchema } from './values.ts';

/**
 * A time in which the provider works on its hardware and deploys nothing new. Running instances go on, unless the
 * provider says otherwise.
 */
const maintenanceWindowSchema = z
  .object({
    starts_at: timestampSchema,
    ends_at: timestampSchema.optional().meta({ description: 'Absent: not known yet.' }),
    /** The regions of the offer that the window applies to. */
    regions: z.array(regionTokenSchema),
    reason: z.string().optional(),
  })
  .meta({ id: 'MaintenanceWindow' });
export type MaintenanceWindow = z.infer<typeof maintenanceWindowSchema>;

/**
 * Why an offer, or storage in a location, has no capacity now: `details.reason` of a 409 `capacity_unavailable`.
 * `sold_out`: all of it is taken · `platform_silent`: a platform or hosts that do not answer have more · `maintenance`:
 * the provider works there · `withheld`: the provider does not sell it there now.
 */
export const unavailableReasons = ['sold_out', 'platform_silent', 'maintenance', 'withheld'] as const;
export type UnavailableReason = (typeof unavailableReasons)[number];

const unavailableRegionSchema = z
  .object({
    region: regionTokenSchema,
    reason: z.enum(unavailableReasons).meta({
      description:
        'sold_out: all units are taken. platform_silent: a platform or hosts with more of them do not answer now. maintenance: the provider works there. withheld: the provider does not sell it there now.',
    }),
  })
  .meta({ id: 'UnavailableRegion' });
export type UnavailableRegion = z.infer<typeof unavailableRegionSchema>;

/**
 * What Berth offers beyond O:, under /v1/x/…. An orchestrator announces it in `Configuration.extras.berth`. Clients of
 * the contract do not need it.
 */
export const berthExtrasSchema = z
  .object({
    /** POST and GET /x/instances/{instanceId}/restart work for instances of this offer. */
    restart: z.boolean().optional(),
    /** POST /x/volumes/{volumeId}/resize works. */
    volume_resize: z.boolean().optional(),
    /** GET /x/volumes/usage works. */
    volume_usage: z.boolean().optional(),
    /** Price of a stopped instance of this offer. */
    stopped_price_per_hour: usdPerHourSchema.optional(),
    /** Minimum rental time of an instance of this offer. */
    minimum_reservation_minutes: z.int().nonnegative().optional(),
    /** Planned and current maintenance of the hardware behind the offer. */
    maintenance_windows: z.array(maintenanceWindowSchema).optional(),
    /** The regions of the offer in which it cannot be deployed now. */
    unavailable: z.array(unavailableRegionSchema).optional(),
  })
  .meta({ id: 'BerthExtras' });
export type BerthExtras = z.infer<typeof berthExtrasSchema>;

/** GET /x/instances/{instanceId}/restart */
export const restartStatusSchema = z
  .object({
    restarting: z.boolean(),
    since: timestampSchema.optional().meta({ description: 'Absent when no restart is in flight.' }),
  })
  .meta({ id: 'RestartStatus' });
export type RestartStatus = z.infer<typeof restartStatusSchema>;

/** How much of a volume is used. */
export const volumeUsageSchema = z
  .object({
    id: z.string(),
    used_bytes: z.int().nonnegative().meta({ description: 'The storage that it takes on the platform.' }),
    measured_at: timestampSchema,
  })
  .meta({ id: 'VolumeUsage' });
export type VolumeUsage = z.infer<typeof volumeUsageSchema>;

/** GET /x/volumes/usage. Volumes whose use is not known are absent. */
export const volumeUsageListSchema = z
  .object({ volumes: z.array(volumeUsageSchema) })
  .meta({ id: 'VolumeUsageList' });

/** POST /x/volumes/{volumeId}/resize. A volume cannot shrink. */
export const resizeVolumeRequestSchema = z
  .object({ size_gb: z.number().positive().max(1_000_000) })
  .meta({ id: 'ResizeVolumeRequest' });
