import type { InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { instance, volume } from '../../../test/support/rows/orchestrator-rows.ts';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { ServerProcess } from '../../kernel/process.ts';
import type { Call } from '../platform/network.ts';
import type { Machine } from '../platform/platform.ts';
import type { Reply } from '../workload/clients.ts';

/** Histories are made of these: each is sound, and a test changes what is to be found. */
export function aRecord({ id = 'inst-1', ...changes }: Partial<InstanceRecord> = {}): InstanceRecord {
  const { spec } = instance(id);
  return instance(id, {
    spec: { ...spec, vcpus: 4, memoryGb: 16, storageGb: 80, image: 'ubuntu-24.04', onlineWithinMs: 90_000 },
    accountId: 'acct-a',
    name: 'alpha-i1',
    offerId: 'cpu',
    region: 'eu-north',
    status: 'ONLINE',
    endpoint: { publicIp: '203.0.113.1', sshPort: 22, sshUsername: 'ubuntu' },
    createdAt: 1_000,
    updatedAt: 1_000,
    createOpenUntil: null,
    ...changes,
  });
}

export function aMachine(changes: Partial<Machine> = {}): Machine {
  return {
    number: 1,
    spec: {
      ref: 'berth-inst-1',
      offerId: 'cpu',
      datacenter: 'dc-north-1',
      hostname: 'h',
      image: 'i',
      vcpus: 4,
      memoryGb: 16,
      rootDiskGb: 80,
      gpuCount: 0,
      gpuType: undefined,
      sshKeys: [],
      cloudInit: undefined,
      note: '',
    },
    createdAt: 0,
    visibleAt: 0,
    power: 'running',
    until: null,
    bootFails: false,
    bootedAt: 0,
    boots: 1,
    reclaimAt: null,
    ...{
      ip: '203.0.113.1',
      staleIp: null,
      staleUntil: 0,
      hostKey: 'SHA256:a',
      sshReadyAt: 0,
    },
    diskId: 'd',
    holdsUnit: true,
    ...changes,
  };
}

export function aVolume({ id = 'vol-1', ...changes }: Partial<VolumeRecord> = {}): VolumeRecord {
  return volume(id, {
    accountId: 'acct-a',
    name: 'alpha-v1',
    sizeGb: 20,
    region: 'eu-north',
    type: 'single',
    status: 'AVAILABLE',
    createdAt: 1_000,
    ...changes,
  });
}

export function aReply(changes: Partial<Reply> = {}): Reply {
  return {
    tenant: 'alpha',
    method: 'GET',
    path: '/v1/instances/inst-1',
    status: 200,
    body: {},
    text: '{}',
    etag: '"e"',
    contentType: 'application/json',
    isReplay: false,
    sentAt: 10_000,
    arrivedAt: 10_100,
    ...changes,
  };
}

export function aCall(changes: Partial<Call> = {}): Call {
  const process = new ServerProcess('r1.1', new Scheduler(0));
  return { process, method: 'create', ref: 'berth-inst-1', sentAt: 0, answeredAt: undefined, ...changes };
}
