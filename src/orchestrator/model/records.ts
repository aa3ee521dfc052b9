import type { CloudInit } from '../../contract/cloud-init.ts';
import type { InstanceType } from '../../contract/configuration.ts';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import type { RequestedBy } from './history.ts';
import type { Endpoint } from './platform-driver.ts';
import type { PlatformResource } from './platform-resource.ts';

/** What was bought, frozen at create. Later changes of the catalog do not affect it. */
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
  /** Cloud-init is dropped once the machine exists: it may hold secrets. */
  cloudInit: CloudInit | undefined;
  onStop: 'release' | 'hold';
  resumable: boolean;
  /** Absent if the row predates this field: the instance is restartable. */
  restartable?: boolean;
  onlineWithinMs: number;
  /** The id of the request that made it, as in the log. Absent if the row predates this field. */
  requestId?: string;
  /** Who made it. Absent if the row predates this field, or the instance was adopted. */
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
  /**
   * The host key, pinned by the first probe or reported by the platform. A machine with another key is not this
   * instance's.
   */
  hostKeyFingerprint: string | null;
  /** Set while Berth itself stops and starts the machine to attach a volume. */
  attachCycle: boolean;
  priceMicroUsdPerHour: number;
  error: string | null;
  createdAt: number;
  updatedAt: number;
  /** Counts the writes of this row. Of two copies, the one with the higher version is newer. */
  version: number;
}

/** The columns of a row that nothing has happened to. */
export const untouchedInstance = {
  endpoint: null,
  hostKeyFingerprint: null,
  attachCycle: false,
  error: null,
  version: 1,
  host: null,
  destroyOrder: null,
} satisfies Partial<InstanceRecord>;

/** The fields of every log line about an instance. */
export function instanceLogNames({
  id,
  accountId,
  spec,
}: Pick<InstanceRecord, 'id' | 'accountId' | 'spec'>): object {
  const { requestId } = spec;
  return { instance: id, account: accountId, ...(requestId !== undefined && { request_id: requestId }) };
}

/** One row of the volumes table. The row of a deleted volume stays as a tombstone. */
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
  /** When its absence was proved. Null if it is not proved. */
  deletedAt: number | null;
  /** The id of the request that made it, as in the log. Null if the row predates this field. */
  requestId: string | null;
}

/** The fields of every log line about a volume. */
export function volumeLogNames({
  id,
  accountId,
  requestId,
}: Pick<VolumeRecord, 'id' | 'accountId' | 'requestId'>) {
  return { volume: id, account: accountId, ...(requestId !== null && { request_id: requestId }) };
}

/**
 * The state of an attachment. The row is removed on proof that the platform's record is gone.
 * - `attaching`: wanted, and the platform has not confirmed it.
 * - `attached`: confirmed.
 * - `detaching`: no longer wanted, and the platform may still have the record.
 */
export type AttachmentState = 'attaching' | 'attached' | 'detaching';

export interface Attachment {
  volumeId: string;
  instanceId: string;
  state: AttachmentState;
}

export interface AccountRecord {
  id: string;
  /** Unique name; also the username of POST /auth/token. */
  name: string;
  /** scrypt, in its own text form. Null for no password login. */
  passwordHash: string | null;
  createdAt: number;
  /**
   * When the account was closed for good. Its credentials no longer work; its row stays while rows of its resources
   * exist. Null if it is open.
   */
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

/** A short-lived token of POST /auth/token. It is valid only while the credential that obtained it is valid. */
export interface TokenRecord {
  digest: Buffer;
  accountId: string;
  /** Digest of the API key or of the account's password hash. */
  parentDigest: Buffer;
  createdAt: number;
  expiresAt: number;
}
