import type { Volume } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { toVolume } from './to-volume.ts';

/** A volume as it is known now. */
export async function showVolume(
  { store: { read }, providers }: Pick<Deps, 'store' | 'providers'>,
  volumeId: string,
): Promise<Volume> {
  const record = await read.volumes.byVolumeId(volumeId);
  if (record === null) throw new Error(`the volume ${volumeId} is not there any more`);
  return toVolume(record, await read.volumes.attachmentsOf({ volumeId: record.id }), providers);
}
