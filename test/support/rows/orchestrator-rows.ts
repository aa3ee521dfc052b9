import { recordedOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import { CREATE_IS_OPEN } from '../../../src/orchestrator/model/platform-resource.ts';
import {
  type InstanceRecord,
  untouchedInstance,
  type VolumeRecord,
} from '../../../src/orchestrator/model/records.ts';
import { START_AT } from '../time/scheduler.ts';

export const accountId = 'acct-1';
export const account = { id: accountId, name: 'one', passwordHash: null, createdAt: 0 };
export const now = START_AT;

/** An instance of the account, as a create writes it. */
export function instance(id: string, changes: Partial<InstanceRecord> = {}): InstanceRecord {
  return {
    ...untouchedInstance,
    id,
    accountId,
    ownerRef: `berth-${id}`,
    platform: 'default',
    name: null,
    offerId: 'offer',
    region: 'here',
    status: 'PROVISIONING',
    spec: {
      instanceType: 'DEDICATED',
      vcpus: 1,
      memoryGb: 1,
      storageGb: 1,
      gpuCount: undefined,
      gpuType: undefined,
      image: 'os',
      sshKeys: ['ssh-ed25519 AAAA'],
      cloudInit: undefined,
      onStop: 'release',
      resumable: true,
      onlineWithinMs: 1,
    },
    priceMicroUsdPerHour: 1,
    createdAt: now,
    updatedAt: now,
    createOpenUntil: CREATE_IS_OPEN,
    ...changes,
  };
}

/** An order for a tenant's DELETE, as the core passes it to a driver. */
export const anOrder = recordedOrder({ reason: 'tenant', by: accountId, at: 0 });

/** A volume of the account, as a create writes it. */
export function volume(id: string, changes: Partial<VolumeRecord> = {}): VolumeRecord {
  return {
    id,
    accountId,
    ownerRef: `berth-${id}`,
    name: id,
    sizeGb: 1,
    region: 'here',
    type: null,
    status: 'CREATING',
    priceMicroUsdPerHour: 1,
    createdAt: now,
    platform: 'default',
    deletedAt: null,
    createOpenUntil: null,
    host: null,
    destroyOrder: null,
    requestId: null,
    ...changes,
  };
}

export const dueWork = {
  resourceKind: 'instance',
  kind: 'create',
  notBefore: now,
  deadlineAt: null,
} as const;
export const claim = {
  platform: 'default',
  owner: 'me',
  now,
  leaseUntil: now + 1000,
  limit: 10,
  resourceKind: 'instance',
} as const;
