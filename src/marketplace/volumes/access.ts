import type { Caller } from '../caller.ts';
import { forbidden, notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';
import type { VolumeRecord } from '../records/volume-record.ts';

/**
 * The volume, if it is of a team of the caller; locked where `read` is a transaction.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function ownVolume(
  read: Pick<Reader, 'volumes' | 'teams'>,
  { userId }: Caller,
  volumeId: string,
): Promise<VolumeRecord> {
  const record = await read.volumes.byVolumeId(volumeId);
  if (record === null) throw notFound('volume');
  if ((await read.teams.member(record.teamId, userId)) === null) throw forbidden('volume');
  return record;
}
