import { z } from 'zod';
import type { TransitionTable } from '../../contract/transitions.ts';
import { idSchema, timestampSchema, usdPerHourSchema } from './values.ts';

export const volumeStatuses = ['creating', 'available', 'attached', 'deleting', 'deleted', 'error'] as const;
const volumeStatusSchema = z.enum(volumeStatuses).meta({ id: 'VolumeStatus' });
export type VolumeStatus = (typeof volumeStatuses)[number];

/** M: leaves the transitions of a volume open; docs/decisions/0016-volumes-of-the-marketplace.md defines them. */
export const volumeTransitions: TransitionTable<VolumeStatus> = {
  // The create was accepted and the provider is making the volume. This state costs nothing.
  creating: ['available', 'attached', 'error', 'deleting', 'deleted'],
  // The volume exists and is on no deployment. Billing starts here.
  available: ['attached', 'deleting', 'error'],
  // At least one attachment is being made, is in place or is being removed. The state ends when the provider has no
  // attachment left.
  attached: ['available', 'deleting', 'error'],
  // The deletion was accepted, and billing has ended. The state ends when the provider provably has no such volume.
  deleting: ['deleted'],
  // Final.
  deleted: [],
  // The provider reported the volume as broken, or never confirmed the create. A deletion ends the state.
  error: ['deleting', 'deleted'],
};

/** Values of `?status=` in GET /api/volumes. */
export const volumeFilters = ['available', 'attached', 'deleting', 'deleted'] as const;
export type VolumeFilter = (typeof volumeFilters)[number];

/** M: Volume. The NFS mount fields are present where the provider's profile defines a mount. */
export const volumeSchema = z
  .object({
    id: z.string().meta({ description: 'Internal id.' }),
    volumeId: z.string().meta({ description: 'Id used in paths.' }),
    name: z.string(),
    userId: z.string(),
    teamId: z.string(),
    providerId: z.string(),
    region: z.string(),
    sizeInGb: z.number().meta({
      description:
        'The size that was last asked for, as far as the provider shows it. It is billed, even if the provider shows a larger one.',
    }),
    usedCapacityBytes: z.number().optional().meta({
      description:
        'At most 15 minutes old. Omitted where the provider does not report it: only providers with `extras.berth.volume_usage` do, since the contract has no such field.',
    }),
    virtualIp: z.string().optional().meta({ description: 'Omitted where the provider does not report it.' }),
    attachedToDeploymentIds: z.array(z.string()),
    attachedToOrderIds: z.array(z.string()),
    status: volumeStatusSchema,
    hourlyRate: usdPerHourSchema,
    originalHourlyRate: usdPerHourSchema.meta({ description: 'Before discount.' }),
    lastPriceUpdate: timestampSchema,
    createdAt: timestampSchema,
    startedAt: timestampSchema.optional().meta({
      description:
        'When billing began: when the provider first showed the volume as available, some seconds after createdAt. Omitted until then.',
    }),
    lastAttachedAt: timestampSchema.optional().meta({ description: 'Omitted until it happens.' }),
    lastDetachedAt: timestampSchema.optional().meta({ description: 'Omitted until it happens.' }),
    extras: z.record(z.string(), z.unknown()),
    nfsEndpoint: z.string().optional(),
    nfsPseudopath: z.string().optional(),
    mountCommand: z.string().optional(),
  })
  .meta({ id: 'Volume' });
export type Volume = z.infer<typeof volumeSchema>;

export const volumePageSchema = z
  .object({
    volumes: z.array(volumeSchema),
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    totalPages: z.int(),
  })
  .meta({ id: 'VolumePage' });
export type VolumePage = z.infer<typeof volumePageSchema>;

/** M: Create body of a volume. */
export const createVolumeSchema = z
  .object({
    name: z.string().max(255),
    sizeInGb: z.number(),
    provider: idSchema,
    region: z.string().max(255).optional(),
    cloudId: idSchema.optional(),
    teamId: idSchema.optional(),
    deploymentId: idSchema.optional(),
  })
  .meta({ id: 'CreateVolume' });
export type CreateVolume = z.infer<typeof createVolumeSchema>;

export const updateVolumeSchema = z
  .object({ name: z.string().max(255).optional(), sizeInGb: z.number().optional() })
  .meta({ id: 'UpdateVolume' });
export type UpdateVolume = z.infer<typeof updateVolumeSchema>;

export const updatedVolumeSchema = volumeSchema
  .pick({
    id: true,
    volumeId: true,
    name: true,
    sizeInGb: true,
    virtualIp: true,
    hourlyRate: true,
    lastPriceUpdate: true,
  })
  .meta({ id: 'UpdatedVolume' });
export type UpdatedVolume = z.infer<typeof updatedVolumeSchema>;

const attachmentFields = {
  id: true,
  volumeId: true,
  status: true,
  virtualIp: true,
  attachedToDeploymentIds: true,
  attachedToOrderIds: true,
} as const;
export const attachedVolumeSchema = volumeSchema
  .pick({ ...attachmentFields, lastAttachedAt: true })
  .meta({ id: 'AttachedVolume' });
export type AttachedVolume = z.infer<typeof attachedVolumeSchema>;
export const detachedVolumeSchema = volumeSchema
  .pick({ ...attachmentFields, lastDetachedAt: true })
  .meta({ id: 'DetachedVolume' });
export type DetachedVolume = z.infer<typeof detachedVolumeSchema>;

export const attachRequestSchema = z.object({ deploymentId: idSchema }).meta({ id: 'AttachRequest' });

export const volumePricingSchema = z
  .object({ provider: z.string(), hourlyRatePerGb: usdPerHourSchema })
  .meta({ id: 'VolumePricing' });
export type VolumePricing = z.infer<typeof volumePricingSchema>;

/** M: Volume region entry. */
export const volumeRegionSchema = z
  .object({
    id: z.string().meta({ description: 'The value to pass as region.' }),
    name: z.string(),
    country_code: z.string().optional(),
    types: z.array(z.string()),
    hasGpuOffers: z.boolean(),
    minSizeGb: z.number(),
    maxSizeGb: z.number(),
    hourlyRatePerGb: usdPerHourSchema,
    cloudId: z.string().optional(),
    cloudName: z.string().optional(),
  })
  .meta({ id: 'VolumeRegion' });
export type VolumeRegion = z.infer<typeof volumeRegionSchema>;

export const volumeRegionsSchema = z
  .object({ hasAnyOffers: z.boolean(), regions: z.array(volumeRegionSchema) })
  .meta({ id: 'VolumeRegions' });
export type VolumeRegions = z.infer<typeof volumeRegionsSchema>;
