import type { CloudInit } from '../../contract/cloud-init.ts';
import type { InstanceType } from '../../contract/configuration.ts';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import type { RequestedBy } from './history.ts';
import type { Endpoint } from './platform-driver.ts';
import type { PlatformResource } from './platform-resource.ts';

/** What was bought, frozen at create: a later change of the catalog does not touch it. */
export interface InstanceSpec {
  instanceType: InstanceType;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  gpuCount: number | undefined;
  gpuType: string | undefined;
  image: string;
  /** authorized_keys lines. */
  sshKeys: string[];
  /** Dropped once the machine exists: it may hold secrets. */
  cloudInit: CloudInit | undefined;
  onStop: 'release' | 'hold';
  resumable: boolean;
  /** Absent: the row is older than this field, and the instance is restartable. */
  restartable?: boolean;
  onlineWithinMs: number;
  /** The request that made it, as its line in the log names it. Absent: it was made before that was kept. */
  requestId?: string;
  /** Who made it. Absent: it was made before that was kept, or it was adopted. */
  createdBy?: RequestedBy;
}

/** One row of the instances table. Times are milliseconds since the Unix epoch. */
export interface InstanceRecord extends PlatformResource {
  id: string;
  accountId: string;
  name: string | null;
  offerId: string;
  region: string;
  status: InstanceStatus;
  spec: InstanceSpec;
  endpoint: Endpoint | null;
  /** Pinned by the first probe, or given by the platform; a machine with another key is not ours. */
  hostKeyFingerprint: string | null;
  /** Set while the orchestrator itself stops and starts the machine to attach a volume. */
  attachCycle: boolean;
  priceMicroUsdPerHour: number;
  error: string | null;
  createdAt: number;
  updatedAt: number;
  /** Counts the writes of this row: of two copies, the one with the higher version is the newer. */
  version: number;
}

/** What all lines of the log about an instance share, from its create on. */
export function instanceLogNames({
  id,
  accountId,
  spec,
}: Pick<InstanceRecord, 'id' | 'accountId' | 'spec'>): object {
  const { requestId } = spec;
  return { instance: id, account: accountId, ...(requestId !== undefined && { request_id: requestId }) };
}

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
export function volumeLogNames({
  id,
  accountId,
  requestId,
}: Pick<VolumeRecord, 'id' | 'accountId' | 'requestId'>) {
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

export interface AccountRecord {
  id: string;
  /** Unique; also the username of POST /auth/token. */
  name: string;
  /** scrypt, in its own text form; null: no password login. */
  passwordHash: string | null;
  createdAt: number;
  /** When it was deleted for good: it opens nothing any more, and its row stays with those of what it had. Null: it is open. */
  closedAt: number | null;
}

/** An API key as stored: never the key itself. */
export interface ApiKeyRecord {
  id: string;
  accountId: string;
  /** SHA-256 of the whole key. */
  digest: Buffer;
  prefix: string;
  lastFour: string;
  label: string | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

/** A short-lived token of POST /auth/token; it dies with the credential that bought it. */
export interface TokenRecord {
  digest: Buffer;
  accountId: string;
  /** Digest of the API key, or of the account's password hash. */
  parentDigest: Buffer;
  createdAt: number;
  expiresAt: number;
}
