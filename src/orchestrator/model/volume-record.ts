import type { VolumeStatus } from '../../contract/volume.ts';
import type { PlatformResource } from './platform-resource.ts';

/** One row of the volumes table; a volume that is gone stays as a tombstone. */
export interface VolumeRecord extends PlatformResource {
  id: string;
  accountId: string;
  name: string;
  sizeGb: number;
  region: string;
  type: string | null;
  status: VolumeStatus;
  priceMicroUsdPerHour: number;
  createdAt: number;
  /** When its absence was proved. */
  deletedAt: number | null;
  /** The request that made it, as its line in the log names it. Null: it was made before that was kept. */
  requestId: string | null;
}

/** What all lines of the log about a volume share, from its create on. */
export function logNames({ id, accountId, requestId }: Pick<VolumeRecord, 'id' | 'accountId' | 'requestId'>) {
  return { volume: id, account: accountId, ...(requestId !== null && { request_id: requestId }) };
}

/**
 * `attaching`: wanted, the platform has not confirmed it · `attached`: confirmed ·
 * `detaching`: no longer wanted, the platform may still hold the record. Gone when proved gone.
 */
export type AttachmentState = 'attaching' | 'attached' | 'detaching';

export interface Attachment {
  volumeId: string;
  instanceId: string;
  state: AttachmentState;
}
