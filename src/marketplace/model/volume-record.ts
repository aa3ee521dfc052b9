import type { VolumeStatus } from '../contract/volume.ts';
import type { Cleanup } from './deployment-record.ts';
import type { Intent, Refusal } from './intent.ts';

/** A change of a volume. `attach` and `detach` last while any attachment is in transit. */
export interface VolumeIntent extends Intent<'create' | 'attach' | 'detach' | 'resize' | 'delete'> {
  /** The deployment that a request attaches to or detaches from; absent: all attachments in transit. */
  deploymentId?: string;
  /** What a resize asked for. */
  toSizeGb?: number;
  /** The name that the volume gets with its new size. */
  name?: string;
  /** The creation or resize that a deletion took the place of, and that goes on where the deletion is refused. */
  before?: VolumeIntent;
}

export interface VolumeRecord {
  /** Internal. */
  id: string;
  /** What paths take. */
  volumeId: string;
  name: string;
  userId: string;
  teamId: string;
  providerId: string;
  region: string;
  cloudId: string | null;
  type: string | null;
  sizeGb: number;
  status: VolumeStatus;
  /** The standard rate of this size, and what is locked in. */
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
  /** When the locked discount ends; null: no end is known. */
  discountEndsAt: number | null;
  lastPriceUpdateAt: number;
  totalCostMicroUsd: number;
  createdAt: number;
  /** When it was first seen available: it is billed from then on. Null: it costs nothing. */
  startedAt: number | null;
  /** When its deletion was accepted, or its provider did not have it any more after it broke: it is billed until then. */
  deletedAt: number | null;
  lastAttachedAt: number | null;
  lastDetachedAt: number | null;

  providerName: string;
  providerVolumeId: string | null;
  action: VolumeIntent | null;
  /** Of the last change that was refused. The next change leaves it: a request may not have read it yet. */
  refusal: Refusal | null;
  /** When the provider last showed it, or when the last alarm about its unproved deletion was logged. */
  observedAt: number | null;
  cleanup: Cleanup;
  revision: number;
  /** When the provider accepted the deletion: a 404 after that is the proof; a 404 without it is a loss. */
  deletionTakenAt: number | null;
  /** The request that made it, as its line in the log names it. Null: it is older than this field. */
  requestId: string | null;
}

/** What all lines of the log about a volume share, from its create on. */
export function logNames({
  volumeId,
  teamId,
  requestId,
}: Pick<VolumeRecord, 'volumeId' | 'teamId' | 'requestId'>) {
  return { volume: volumeId, team: teamId, ...(requestId !== null && { request_id: requestId }) };
}

/** A volume on a deployment, until the provider's record of it is gone. */
export interface AttachmentRecord {
  volumeId: string;
  deploymentId: string;
  state: 'attaching' | 'attached' | 'detaching';
}
