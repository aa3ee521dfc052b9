import { z } from 'zod';
import { nameSchema } from '../../contract/instance.ts';
import type { Note, OwnerRef } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/records.ts';

/** The part of a volume that its note restores. */
export type NotedVolume = Pick<
  VolumeRecord,
  | 'id'
  | 'accountId'
  | 'name'
  | 'region'
  | 'type'
  | 'sizeGb'
  | 'priceMicroUsdPerHour'
  | 'createdAt'
  | 'requestId'
>;

/** The note that the platform stores for a volume: everything in its row that cannot be observed. */
export function toNote(installationId: string, record: VolumeRecord): Note {
  const { id, platform, accountId, name, region, type, sizeGb } = record;
  const { priceMicroUsdPerHour, createdAt, requestId } = record;
  return JSON.stringify({
    installation: installationId,
    kind: 'volume',
    platform,
    id,
    accountId,
    name,
    region,
    type,
    sizeGb,
    priceMicroUsdPerHour,
    createdAt,
    requestId,
  });
}

const token = z.string().min(1).max(255);

/** A note that {@link toNote} wrote. */
export const volumeNoteSchema: z.ZodType<NotedVolume> = z.object({
  kind: z.literal('volume'),
  id: z.string().regex(/^vol-[0-9a-f]{32}$/),
  accountId: token,
  name: nameSchema,
  region: token,
  type: token.nullable(),
  sizeGb: z.number().positive(),
  priceMicroUsdPerHour: z.int().nonnegative(),
  createdAt: z.int().nonnegative(),
  requestId: z.string().max(64).nullable().default(null),
});

/** The restored row of a noted volume. */
export function fromNote(
  { platform, ref: ownerRef }: { platform: string; ref: OwnerRef },
  noted: NotedVolume,
): VolumeRecord {
  const { id, accountId, name, sizeGb, region, type, priceMicroUsdPerHour, createdAt, requestId } = noted;
  return {
    id,
    accountId,
    ownerRef,
    platform,
    name,
    sizeGb,
    region,
    type,
    status: 'AVAILABLE',
    priceMicroUsdPerHour,
    createdAt,
    deletedAt: null,
    createOpenUntil: null,
    requestId,
    host: null,
    destroyOrder: null,
  };
}
