import { expect, it } from 'vitest';
import { instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { type Instance, instanceSchema } from '../../contract/instance.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import { amend, toInstance } from './transition.ts';

const row = instance('a', {
  name: 'before',
  status: 'ERROR',
  error: 'before',
  endpoint: { publicIp: '198.51.100.1', sshPort: 22, sshUsername: 'root' },
  updatedAt: 1,
});
const { spec } = row;
const endpoint = { publicIp: '198.51.100.1', sshPort: 22, sshUsername: 'root' };
const LATER = 2;

/** For each field that a client sees, a change of the row that changes it. */
const visibleChanges: Record<Exclude<keyof Instance, 'updated_at'>, Partial<InstanceRecord>> = {
  id: { id: 'b' },
  name: { name: 'after' },
  configuration_id: { offerId: 'another' },
  region: { region: 'there' },
  status: { status: 'OFFLINE' },
  public_ip: { endpoint: { ...endpoint, publicIp: '198.51.100.2' } },
  private_ip: { endpoint: { ...endpoint, privateIp: '10.0.0.1' } },
  ssh_port: { endpoint: { ...endpoint, sshPort: 2222 } },
  ssh_username: { endpoint: { ...endpoint, sshUsername: 'user' } },
  port_forwards: {
    endpoint: { ...endpoint, portForwards: [{ external_port: 8080, internal_port: 80 }] },
  },
  vcpus: { spec: { ...spec, vcpus: 2 } },
  memory_gb: { spec: { ...spec, memoryGb: 2 } },
  storage_gb: { spec: { ...spec, storageGb: 2 } },
  gpu_count: { spec: { ...spec, gpuCount: 2 } },
  gpu_type: { spec: { ...spec, gpuType: 'another' } },
  image: { spec: { ...spec, image: 'another' } },
  price_per_hour: { priceMicroUsdPerHour: 2_000_000 },
  error: { error: 'after' },
  created_at: { createdAt: 3_000 },
};

const hiddenChanges: Partial<InstanceRecord>[] = [
  { hostKeyFingerprint: 'SHA256:x' },
  { attachCycle: true },
  { host: 'n1' },
  { ownerRef: 'another' },
  { createOpenUntil: null },
  { spec: { ...spec, sshKeys: [], cloudInit: { runcmd: ['x'] } } },
  { endpoint: { sshUsername: 'root', sshPort: 22, publicIp: '198.51.100.1' } },
];

async function amended(changes: Partial<InstanceRecord>): Promise<InstanceRecord> {
  const written: InstanceRecord[] = [];
  const instances = { update: async (record: InstanceRecord) => void written.push(record) };
  const returned = await amend({ instances } as unknown as Transaction, row, LATER, changes);
  expect(written).toEqual([returned]);
  expect(returned.version).toBe(row.version + 1);
  return returned;
}

it('every field of the schema has its change here', () => {
  expect(Object.keys(visibleChanges).sort()).toEqual(
    Object.keys(instanceSchema.shape)
      .filter((field) => field !== 'updated_at')
      .sort(),
  );
});

it.each(Object.entries(visibleChanges))('a change of %s moves updated_at', async (field, changes) => {
  const after = await amended(changes);
  const [before, now] = [row, after].map((record) => Object.entries(toInstance(record)).map(String));
  expect(now?.find((entry) => entry.startsWith(`${field},`))).not.toBe(
    before?.find((entry) => entry.startsWith(`${field},`)),
  );
  expect(after.updatedAt).toBe(LATER);
});

it.each(hiddenChanges)('a change that no client sees does not move updated_at: %j', async (changes) => {
  expect((await amended(changes)).updatedAt).toBe(row.updatedAt);
});

it('updated_at never goes back', async () => {
  const instances = { update: async () => undefined };
  const tx = { instances } as unknown as Transaction;
  const ahead = { ...row, updatedAt: LATER + 1 };
  expect((await amend(tx, ahead, LATER, { endpoint: null })).updatedAt).toBe(LATER + 1);
});
