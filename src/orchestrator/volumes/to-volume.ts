import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Volume } from '../../contract/volume.ts';
import type { VolumeReader } from '../model/store.ts';
import type { Attachment, VolumeRecord } from '../model/volume-record.ts';

/** O: Volume, as the wire has it. An attachment counts until its record is gone (O: Volume status, rules). */
export async function toVolume(volumes: VolumeReader, record: VolumeRecord): Promise<Volume> {
  const isOnPlatform = ({ state }: Attachment): boolean => state !== 'attaching';
  const attachments = await volumes.attachmentsOfVolume(record.id);
  return {
    id: record.id,
    name: record.name,
    size_gb: record.sizeGb,
    region: record.region,
    ...(record.type !== null && { type: record.type }),
    status: record.status,
    attached_instance_ids: attachments.filter(isOnPlatform).map(({ instanceId }) => instanceId),
    price_per_hour: usdFromMicroUsd(record.priceMicroUsdPerHour),
    created_at: new Date(record.createdAt).toISOString(),
  };
}
