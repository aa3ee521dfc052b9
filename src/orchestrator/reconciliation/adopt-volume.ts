import type { ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import { type Attachment, type VolumeRecord, volumeLogNames } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import type { ReconcileContext, Recording } from '../platform/context.ts';
import { isAttachable, workOnAttachments } from '../volumes/attach.ts';
import { fromNote, volumeNoteSchema } from '../volumes/note.ts';
import { claimActualSize, withSize } from '../volumes/storage.ts';
import { updateAttachmentStatus } from '../volumes/transition.ts';
import { readOwnNote, whyNotAdoptable } from './adopt-machine.ts';
import { type Adopted, auditByServer } from './without-row.ts';

/** Like `adoptMachine`, for a volume. Its attachments are taken from the platform. */
export async function adoptVolume(context: ReconcileContext, volume: ObservedVolume): Promise<Adopted> {
  const { store, platform, log, clock } = context;
  const noted = readOwnNote(context, volume, volumeNoteSchema);
  if (!('id' in noted)) return noted.adopted;
  const storage = { region: noted.region, gb: Math.max(noted.sizeGb, volume.sizeGb ?? 0) };
  const problem = await whyNotAdoptable(context, 'volume', noted);
  if (problem !== undefined) return { problem, storage, isWhole: true };
  const shown = await listedAttachments(context, noted.id, volume.attachedTo);
  await store.transact(async (tx) => {
    if ((await tx.volumes.byId(noted.id)) !== null) return;
    const record = withSize(fromNote({ platform, ref: volume.ref }, noted), volume);
    await tx.volumes.insert({ ...record, host: volume.host ?? null });
    await auditByServer(context, tx, { action: 'volume.adopt', subject: record.id, ref: volume.ref });
    await claimActualSize(tx, record);
    const { status } = await applyAttachments(tx, record, shown, clock.now());
    log.warn(
      { ...volumeLogNames(record), status, attachments: shown.length },
      `the row of a volume was restored from its note: ${context.sightings.whyRowIsMissing}`,
    );
  });
  return 'adopted';
}

/** Updates the size and the attachments of a volume's row from the platform, after a restore. */
export async function reconcileVolume(context: Recording, volume: ObservedVolume): Promise<void> {
  const { store, clock } = context;
  const row = await store.read.volumes.byOwnerRef(volume.ref);
  if (row === null || isEnding(row)) return;
  const shown = await listedAttachments(context, row.id, volume.attachedTo);
  await store.transact(async (tx) => {
    const current = await tx.volumes.byId(row.id);
    // Do not claim storage for a volume deleted since the listing: the claim would never be released.
    if (current === null || isEnding(current)) return;
    const grown = withSize(current, volume);
    if (grown !== current) {
      await tx.volumes.update(grown);
      await claimActualSize(tx, grown);
    }
    await applyAttachments(tx, grown, shown, clock.now());
  });
}

function isEnding({ deletedAt, status }: VolumeRecord): boolean {
  return deletedAt !== null || status === 'DELETING' || status === 'ERROR';
}

/**
 * The listed attachments as rows. Instances that cannot have volumes are detached; machines without a row are skipped.
 */
async function listedAttachments(
  { store }: Recording,
  volumeId: string,
  machines: readonly OwnerRef[],
): Promise<Attachment[]> {
  const rows = await Promise.all(machines.map((ref) => store.read.instances.byOwnerRef(ref)));
  return rows.flatMap((row): Attachment[] =>
    row === null
      ? []
      : [{ volumeId, instanceId: row.id, state: isAttachable(row) ? 'attached' : 'detaching' }],
  );
}

async function applyAttachments(
  tx: Transaction,
  volume: VolumeRecord,
  shown: readonly Attachment[],
  now: number,
): Promise<VolumeRecord> {
  const rows = await tx.volumes.attachmentsOfVolume(volume.id);
  for (const { volumeId, instanceId, state } of rows)
    if (state === 'attached' && !shown.some((one) => one.instanceId === instanceId))
      await tx.volumes.removeAttachment(volumeId, instanceId);
  for (const attachment of shown) {
    const row = rows.find(({ instanceId }) => instanceId === attachment.instanceId);
    if (row === undefined || row.state === 'attaching') await tx.volumes.putAttachment(attachment);
  }
  const current = await updateAttachmentStatus(tx, volume);
  const left = await tx.volumes.attachmentsOfVolume(volume.id);
  if (left.some(({ state }) => state !== 'attached')) await workOnAttachments(tx, current, now);
  return current;
}
