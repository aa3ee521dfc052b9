import type { Instance } from '../../contract/instance.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { InstanceRecord } from '../model/instance-record.ts';

/** O: Instance, as the wire has it. */
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
      error: record.error ?? 'The instance failed; the reason was not recorded.',
    }),
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
  };
}
