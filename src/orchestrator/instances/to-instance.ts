import type { Instance } from '../../contract/instance.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { InstanceRecord } from '../model/records.ts';

/** O: Instance, as a client sees it. */
export function toInstance(record: InstanceRecord): Instance {
  const { spec, endpoint } = record;
  return {
    id: record.id,
    ...(record.name !== null && { name: record.name }),
    configuration_id: record.offerId,
    region: record.region,
    status: record.status,
    ...(endpoint !== null && {
      public_ip: endpoint.publicIp,
      ...(endpoint.privateIp !== undefined && { private_ip: endpoint.privateIp }),
      ssh_port: endpoint.sshPort,
      ssh_username: endpoint.sshUsername,
      ...(endpoint.portForwards !== undefined && { port_forwards: endpoint.portForwards }),
    }),
    vcpus: spec.vcpus,
    memory_gb: spec.memoryGb,
    storage_gb: spec.storageGb,
    ...(spec.gpuCount !== undefined && { gpu_count: spec.gpuCount }),
    ...(spec.gpuType !== undefined && { gpu_type: spec.gpuType }),
    image: spec.image,
    price_per_hour: usdFromMicroUsd(record.priceMicroUsdPerHour),
    ...(record.status === 'ERROR' && {
      error: record.error ?? 'The instance failed.',
    }),
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
  };
}

/** Whether a client sees two states of an instance as the same, apart from `updated_at`. */
export function looksSame(before: InstanceRecord, after: InstanceRecord): boolean {
  const updatedAt = 0;
  const [first, second] = [before, after].map((record) =>
    JSON.stringify(toInstance({ ...record, updatedAt })),
  );
  return first === second;
}
