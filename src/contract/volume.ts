import { z } from 'zod';
import { nameSchema } from './instance.ts';
import type { TransitionTable } from './transitions.ts';
import { regionTokenSchema, timestampSchema, usdPerHourSchema } from './values.ts';

export const volumeStatusSchema = z
  .enum(['CREATING', 'AVAILABLE', 'ATTACHING', 'ATTACHED', 'DETACHING', 'DELETING', 'ERROR'])
  .meta({ id: 'VolumeStatus' });
export type VolumeStatus = z.infer<typeof volumeStatusSchema>;

/** O: leaves the volume's transitions open; docs/decisions/0003-volume-states.md settles them. */
export const volumeTransitions: TransitionTable<VolumeStatus> = {
  // The intent is stored. The platform has not confirmed the volume.
  CREATING: ['AVAILABLE', 'ATTACHING', 'DELETING', 'ERROR'],
  // Exists and is not attached.
  AVAILABLE: ['ATTACHING', 'DELETING', 'ERROR'],
  // At least one attachment is under way and none is being removed.
  ATTACHING: ['ATTACHED', 'DETACHING', 'AVAILABLE', 'ERROR'],
  // Every attachment record is in place.
  ATTACHED: ['ATTACHING', 'DETACHING', 'ERROR'],
  // At least one attachment record is being removed. Left when that record is gone.
  DETACHING: ['AVAILABLE', 'ATTACHED', 'ATTACHING', 'DELETING', 'ERROR'],
  // Left only by proof that the volume is gone. The API then answers 404.
  DELETING: [],
  // The platform refused the volume for good. A DELETE cleans up the rest.
  ERROR: ['DELETING'],
};

/** O: VolumeLocation. `id` equals the region token used in `Configuration.regions`. */
const volumeLocationSchema = z
  .object({
    id: regionTokenSchema,
    name: z.string().min(1),
    types: z.array(z.string().min(1)).optional(),
    country_code: z.string().length(2).optional(),
  })
  .meta({ id: 'VolumeLocation' });

export type VolumeLocation = z.infer<typeof volumeLocationSchema>;

export const volumeLocationListSchema = z
  .object({ locations: z.array(volumeLocationSchema) })
  .meta({ id: 'VolumeLocationList' });

const instanceIdsSchema = z.array(z.string().min(1).max(255)).max(64);

/** O: CreateVolumeRequest. */
export const createVolumeRequestSchema = z
  .object({
    name: nameSchema,
    size_gb: z.number().positive().max(1_000_000),
    region: z.string().min(1).max(63).meta({ description: 'A token from /volumes/locations.' }),
    type: z.string().min(1).max(63).optional().meta({ description: 'From VolumeLocation.types.' }),
    instance_ids: instanceIdsSchema.optional().meta({ description: 'Instances to attach to at create.' }),
  })
  .meta({ id: 'CreateVolumeRequest' });
export type CreateVolumeRequest = z.infer<typeof createVolumeRequestSchema>;

export const attachVolumeRequestSchema = z
  .object({ instance_ids: instanceIdsSchema.min(1) })
  .meta({ id: 'AttachVolumeRequest' });

/** O: "when omitted, detaches from all instances". */
export const detachVolumeRequestSchema = z
  .object({ instance_ids: instanceIdsSchema.min(1).optional() })
  .meta({ id: 'DetachVolumeRequest' });

/** O: Volume. */
export const volumeSchema = z
  .object({
    id: z.string().min(1),
    name: z.string().min(1),
    size_gb: z.number().positive(),
    region: regionTokenSchema,
    type: z.string().optional(),
    status: volumeStatusSchema,
    attached_instance_ids: z.array(z.string()).optional(),
    price_per_hour: usdPerHourSchema.optional(),
    created_at: timestampSchema.optional(),
  })
  .meta({ id: 'Volume' });
export type Volume = z.infer<typeof volumeSchema>;
