import { z } from 'zod';
import { instanceTypeSchema } from '../../contract/configuration.ts';
import { nameSchema } from '../../contract/instance.ts';
import { parseSshPublicKey } from '../../contract/ssh-key.ts';
import type { Note, OwnerRef } from '../model/platform-driver.ts';
import { MAX_NOTE_BYTES } from '../model/platform-resource.ts';
import { type InstanceRecord, type InstanceSpec, untouchedInstance } from '../model/records.ts';

/**
 * The note that the platform stores for an instance: everything in its row that cannot be observed, without secrets. If
 * the keys are too long, their comments are left out, then the keys themselves. An instance restored from a note
 * without keys is proved by its host key alone.
 */
export function toNote(installationId: string, record: InstanceRecord): Note {
  const { sshKeys } = record.spec;
  const withoutComments = sshKeys.map((line) => line.split(' ', 2).join(' '));
  const notes = [sshKeys, withoutComments, []].map((keys) => format(installationId, record, keys));
  return (
    notes.find((note) => Buffer.byteLength(note) <= MAX_NOTE_BYTES) ?? format(installationId, record, [])
  );
}

function format(installationId: string, record: InstanceRecord, sshKeys: readonly string[]): Note {
  const { id, platform, accountId, name, offerId, region, spec, priceMicroUsdPerHour, createdAt } = record;
  const { cloudInit: _secret, createdBy: _ours, ...kept } = spec;
  const noted = { id, accountId, name, offerId, region, spec: { ...kept, sshKeys } };
  return JSON.stringify({
    installation: installationId,
    kind: 'instance',
    platform,
    ...noted,
    priceMicroUsdPerHour,
    createdAt,
  });
}

const token = z.string().min(1).max(255);
const amount = z.number().nonnegative();

const specSchema = z
  .object({
    instanceType: instanceTypeSchema,
    vcpus: z.int().positive(),
    memoryGb: amount,
    storageGb: amount,
    gpuCount: z.int().nonnegative().optional(),
    gpuType: z.string().min(1).max(255).optional(),
    image: token,
    sshKeys: z.array(z.string().refine((line) => 'key' in parseSshPublicKey(line))),
    onStop: z.enum(['release', 'hold']),
    resumable: z.boolean(),
    restartable: z.boolean().optional(),
    onlineWithinMs: z.number().positive(),
    requestId: z.string().max(64).optional(),
  })
  .transform(
    (spec): InstanceSpec => ({
      ...spec,
      gpuCount: spec.gpuCount,
      gpuType: spec.gpuType,
      cloudInit: undefined,
    }),
  );

/** A note that {@link toNote} wrote. */
export const instanceNoteSchema = z.object({
  kind: z.literal('instance'),
  id: z.string().regex(/^inst-[0-9a-f]{32}$/),
  accountId: token,
  name: nameSchema.nullable(),
  offerId: token,
  region: token,
  spec: specSchema,
  priceMicroUsdPerHour: z.int().nonnegative(),
  createdAt: z.int().nonnegative(),
});

/** The part of an instance that its note restores. */
export type NotedInstance = z.infer<typeof instanceNoteSchema>;

/** The restored row of a noted instance. `now` is in milliseconds since the epoch. */
export function fromNote(
  { platform, ref: ownerRef }: { platform: string; ref: OwnerRef },
  { kind: _, ...noted }: NotedInstance,
  { now, ...shown }: Pick<InstanceRecord, 'status' | 'endpoint' | 'hostKeyFingerprint'> & { now: number },
): InstanceRecord {
  const updatedAt = Math.max(now, noted.createdAt);
  return { ...untouchedInstance, ...noted, ...shown, ownerRef, platform, updatedAt, createOpenUntil: null };
}
