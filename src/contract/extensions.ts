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
    /** GET /x/changes works. It concerns the whole account, so all offers say the same. */
    changes: z.boolean().optional(),
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

/** POST /x/volumes/{volumeId}/resize. A volume cannot shrink. */
export const resizeVolumeRequestSchema = z
  .object({ size_gb: z.number().positive().max(1_000_000) })
  .meta({ id: 'ResizeVolumeRequest' });

/** Longest wait of GET /x/changes, in seconds. */
export const MAX_WAIT_S = 30;
/** Maximum number of changes in a reply to GET /x/changes. */
export const MAX_CHANGES = 1_000;

const changeSchema = z
  .object({
    kind: z.enum(['instance', 'volume']),
    id: z.string().min(1),
    version: z.int().positive().meta({
      description:
        'Grows with each write. A copy that was read after this version was first listed is current.',
    }),
  })
  .meta({ id: 'Change' });
export type Change = z.infer<typeof changeSchema>;

/** GET /x/changes */
export const changesSchema = z
  .object({
    since: z.string().optional().meta({ description: 'The cursor of the request, if any.' }),
    cursor: z.string().min(1).meta({ description: 'Send it as `since` with the next request.' }),
    reset: z.boolean().meta({
      description:
        'Anything may have changed: after this reply read everything once, and continue from `cursor`.',
    }),
    changes: z
      .array(changeSchema)
      .max(MAX_CHANGES)
      .meta({ description: 'Each instance or volume at most once.' }),
    more: z
      .boolean()
      .meta({ description: 'There are more changes: send the next request with `cursor` at once.' }),
  })
  .meta({ id: 'Changes' });
export type Changes = z.infer<typeof changesSchema>;
