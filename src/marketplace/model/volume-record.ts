import type { VolumeStatus } from '../contract/volume.ts';
import type { Cleanup } from './deployment-record.ts';
import type { Intent, Refusal } from './intent.ts';

/** What is wanted of a volume and not observed yet. */
export interface VolumeIntent extends Intent<'create' | 'attach' | 'detach' | 'resize' | 'delete'> {
  /** The deployment to attach to or detach from. These two kinds are stored in an attachment, the others in the volume. */
  deploymentId?: string;
  toSizeGb?: number;
  /** The name that the volume gets together with its new size. */
  name?: string;
}

export interface VolumeUsage {
  usedBytes: number;
  measuredAt: number;
}

export interface VolumeRecord {
  /** The internal id. */
  id: string;
  /** The id in paths. */
  volumeId: string;
  name: string;
  userId: string;
  teamId: string;
  providerId: string;
  region: string;
  cloudId: string | null;
  type: string | null;
  /** The size that was last asked for and then seen at the provider. It is shown and billed. */
  sizeGb: number;
  /** The size of a resize that was given up: the provider may still carry it out. Null: none. */
  resizeGivenUpGb: number | null;
  /** The size that the provider shows, if it differs from `sizeGb`. */
  providerSizeGb: number | null;
  status: VolumeStatus;
  /** The standard rate of this size, and the locked-in rate. */
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
  /** When the locked-in discount ends; null: no end is known. */
  discountEndsAt: number | null;
  lastPriceUpdateAt: number;
  totalCostMicroUsd: number;
  createdAt: number;
  /** When the volume was first seen available. It is billed from then on. Null: it costs nothing. */
  startedAt: number | null;
  /** When billing ended: the deletion was accepted, or a broken volume was found missing. */
  deletedAt: number | null;
  lastAttachedAt: number | null;
  lastDetachedAt: number | null;

  providerName: string;
  providerVolumeId: string | null;
  /** The wanted creation, resize or deletion. */
  action: VolumeIntent | null;
  /** The next change keeps it, since a request may not have read it yet. */
  refusal: Refusal | null;
  /** When the provider last showed the volume, or when the last alarm about its unproved deletion was logged. */
  observedAt: number | null;
  cleanup: Cleanup;
  revision: number;
  /** How much of it the provider last reported to be used, and when that was. Null: it never reported it. */
  usage: VolumeUsage | null;
  /** When the provider accepted the deletion. A 404 after that proves it; a 404 without it is a loss. */
  deletionTakenAt: number | null;
  /** The id of the request that made the volume, as in the log. Null on rows older than this field. */
  requestId: string | null;
}

/** The fields that all log lines about a volume share, from its create on. */
export function logNames({ volumeId, teamId, providerId, requestId }: VolumeRecord) {
  return {
    volume: volumeId,
    team: teamId,
    provider: providerId,
    ...(requestId !== null && { request_id: requestId }),
  };
}

/** A volume on a deployment, until the provider's record of the attachment is gone. */
export interface AttachmentRecord {
  volumeId: string;
  deploymentId: string;
  state: 'attaching' | 'attached' | 'detaching';
  /** The attach or detach. Null: nothing else is wanted than was observed. */
  intent: VolumeIntent | null;
}

/** The attachment with this intent. */
export function toAttachment(
  { id }: Pick<VolumeRecord, 'id'>,
  deploymentId: string,
  intent: VolumeIntent | null,
): AttachmentRecord {
  const state = intent === null ? 'attached' : intent.kind === 'attach' ? 'attaching' : 'detaching';
  return { volumeId: id, deploymentId, state, intent };
}
