import { z } from 'zod';
import { nameSchema } from '../../contract/instance.ts';
import type { Note, OwnerRef } from '../model/platform-driver.ts';
import type { VolumeRecord } from '../model/records.ts';

/** The note that the platform stores for a volume: everything in its row that cannot be observed. */
export function toNote(installationId: string, record: VolumeRecord): Note {
  const { id, platform, accountId, name, region, type, sizeGb } = record;
  const { priceMicroUsdPerHour, createdAt, requestId } = record;
  const place = { installation: installationId, kind: 'volume', platform };
  const noted = { id, accountId, name, region, type, sizeGb, priceMicroUsdPerHour, createdAt, requestId };
  return JSON.stringify({ ...place, ...noted });
}

const token = z.string().min(1).max(255);

/** A note that {@link toNote} wrote. */
export const volumeNoteSchema = z.object({
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
  { kind: _, ...noted }: z.infer<typeof volumeNoteSchema>,
): VolumeRecord {
  return {
    ...noted,
    ownerRef,
    platform,
    status: 'AVAILABLE',
    deletedAt: null,
    createOpenUntil: null,
    host: null,
    destroyOrder: null,
  };
}
