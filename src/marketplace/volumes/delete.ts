import { type ApiError, invalid } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { endBilling } from '../ledger/segments.ts';
import { isActive } from '../model/deployment-record.ts';
import { hasTimedOut } from '../model/intent.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { volumeProviderOf } from '../providers/volume-provider.ts';
import { type AskedVolume, askVolume, assertIdle, awaitVolume, endUnmade } from './intents.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';

export type DeleteDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'options' | 'providers'>;

/**
 * M: DELETE /api/volumes/{volumeId}. A second delete succeeds. `assertStillWanted` runs with the volume locked; if it
 * throws, nothing changes.
 * @throws {ApiError} PROVIDER_SLOW: sent, and not decided; any other: nothing changed
 */
export async function deleteVolume(
  deps: DeleteDeps,
  caller: Caller,
  volumeId: string,
  assertStillWanted: (tx: Transaction) => Promise<void> = async () => undefined,
): Promise<{ success: true }> {
  const known = await ownVolume(deps.store.read, caller, volumeId, 'end');
  const until = deps.clock.now() + deps.options.lifecycleWaitMs;
  const asked = await orderDeletion(deps, known, { by: caller.userId, until }, assertStillWanted);
  if (asked !== null) await awaitVolume(deps, asked, ({ record }) => isDeleted(record));
  return { success: true };
}

/** Writes the intent to delete the volume. Null: it is deleted or being deleted. @throws {ApiError} if it is in use */
export async function orderDeletion(
  deps: DeleteDeps,
  known: VolumeRecord,
  { by, until }: Pick<VolumeIntent, 'by' | 'until'>,
  assertStillWanted: (tx: Transaction) => Promise<void>,
): Promise<AskedVolume | null> {
  const { store, clock, options, providers } = deps;
  const volumeProvider = volumeProviderOf(providers, known.providerId);
  return transactOnVolume(store, known.id, async (tx, snapshot): Promise<AskedVolume | null> => {
    const { record } = snapshot;
    if (isDeleted(record)) return null;
    assertDeletable(snapshot, clock.now(), options);
    await assertStillWanted(tx);
    if (record.providerVolumeId === null) {
      await endUnmade(tx, snapshot, { status: 'deleted', deletedAt: record.deletedAt ?? clock.now() });
      return null;
    }
    // Billing ends now. The volume is deleted once the provider is configured again.
    if (volumeProvider === null) return acceptDeletion(deps, tx, record);
    // If the deletion is refused, a resize may still take effect.
    const resizeGivenUpGb = record.action?.toSizeGb ?? record.resizeGivenUpGb;
    return askVolume(tx, record, { kind: 'delete', by, since: clock.now(), until }, { resizeGivenUpGb });
  });
}

export function isDeleted({ status }: VolumeRecord): boolean {
  return status === 'deleting' || status === 'deleted';
}

/** M: Volume rules, 3: "Delete requires that the volume is not attached to an active deployment." */
export function assertDeletable(
  { record, attachments }: VolumeSnapshot,
  now: number,
  options: DeleteDeps['options'],
): void {
  const holders = attachments.filter(({ deployment }) => isActive(deployment)).map((it) => it.deployment.id);
  if (holders.length > 0) throw stillAttached(holders);
  // A resize without an answer must not keep the volume billed.
  if (record.action?.kind === 'resize' && hasTimedOut(record.action, now, options)) return;
  // Attachments to ended deployments are detached by the deletion.
  assertIdle(record, [], now, options);
}

export function stillAttached(deploymentIds: readonly string[]): ApiError {
  return invalid('', 'The volume is attached to an active deployment; detach it first.', {
    deploymentIds: [...deploymentIds],
  });
}

/**
 * Whether a deletion was requested and is not proved yet. This includes a volume that is `deleted` for its user, but
 * that an abandoned create made late.
 */
export function isBeingDeleted({ status, cleanup }: VolumeRecord): boolean {
  return status === 'deleting' || cleanup === 'wanted';
}

/**
 * Ends billing, because the provider has accepted the deletion or may have. A 404 proves the deletion later. `isTaken`
 * means that the provider confirmed it, so that a 404 is not a loss. The volume must be locked.
 */
export async function acceptDeletion(
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  tx: Pick<Transaction, 'volumes' | 'ledger' | 'discounts' | 'signals' | 'losses'>,
  record: VolumeRecord,
  isTaken = false,
): Promise<null> {
  const isBegun = isBeingDeleted(record);
  if (record.status === 'deleted' && !isBegun) return null;
  const now = clock.now();
  const deletionTakenAt = isTaken ? (record.deletionTakenAt ?? now) : record.deletionTakenAt;
  // The billing of a broken volume has already ended if its provider answered 404.
  const deletedAt = record.deletedAt ?? (await endBilling({ random }, tx, 'volume', record.id, now));
  await writeVolume(tx, record, {
    ...(!isBegun && { status: 'deleting', cleanup: 'wanted' }),
    deletedAt,
    deletionTakenAt,
  });
  if (isTaken) await tx.losses.release(record.id);
  await tx.signals.wake(record.providerId, record.id);
  return null;
}
