import type { CloudInit } from '../../contract/cloud-init.ts';
import type { InstanceType } from '../../contract/configuration.ts';
import type { InstanceStatus } from '../../contract/instance.ts';
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
  /** Absent: it was bought before that was said, and is. */
  restartable?: boolean;
  onlineWithinMs: number;
  /** The request that made it, as its line in the log names it. Absent: it was made before that was kept. */
  requestId?: string;
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
  /** Pinned by the first probe, or told by the platform; a machine with another key is not ours. */
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
export function logNames({ id, accountId, spec }: Pick<InstanceRecord, 'id' | 'accountId' | 'spec'>): object {
  const { requestId } = spec;
  return { instance: id, account: accountId, ...(requestId !== undefined && { request_id: requestId }) };
}
