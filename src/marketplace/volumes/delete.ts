import { type ApiError, invalid } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { isActive } from '../model/deployment-record.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { volumeProviderOf } from '../providers/volume-provider.ts';
import { acceptDeletion } from './accept-deletion.ts';
import { awaitVolume } from './await-intent.ts';
import { type AskedVolume, assertIdle, hasTimedOut, writeVolumeIntent } from './intents.ts';
import { dropAttachments } from './release.ts';
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
  const { store, clock, options, providers } = deps;
  const known = await ownVolume(store.read, caller, volumeId);
  const volumeProvider = volumeProviderOf(providers, known.providerId);
  const asked = await transactOnVolume(store, known.id, async (tx, snapshot): Promise<AskedVolume | null> => {
    const { record } = snapshot;
    if (isDeleted(record)) return null;
    assertDeletable(snapshot, clock.now(), options);
    await assertStillWanted(tx);
    if (record.providerVolumeId === null) return endWithoutVolume(tx, snapshot, clock.now());
    // Billing ends now. The volume is deleted once the provider is configured again.
    if (volumeProvider === null) return acceptDeletion(deps, tx, record);
    const since = clock.now();
    const until = since + options.lifecycleWaitMs;
    const { action } = record;
    const goesOn = action?.kind === 'create' || action?.kind === 'resize';
    const intent = { kind: 'delete', by: caller.userId, since, until } as const;
    return writeVolumeIntent(tx, record, { ...intent, ...(goesOn && { before: action }) });
  });
  if (asked !== null) await awaitVolume(deps, asked, { isDone: ({ record }) => isDeleted(record) });
  return { success: true };
}

function isDeleted({ status }: VolumeRecord): boolean {
  return status === 'deleting' || status === 'deleted';
}

async function endWithoutVolume(
  tx: Transaction,
  { record, attachments }: VolumeSnapshot,
  at: number,
): Promise<null> {
  await dropAttachments(tx, record, attachments);
  const deletedAt = record.deletedAt ?? at;
  await writeVolume(tx, record, { status: 'deleted', deletedAt, action: null });
  return null;
}

/** M: Volume rules, 3: "Delete requires that the volume is not attached to an active deployment." */
function assertDeletable(
  { record, attachments }: VolumeSnapshot,
  now: number,
  options: DeleteDeps['options'],
): void {
  const holders = attachments.filter(({ deployment }) => isActive(deployment)).map((it) => it.deployment.id);
  if (holders.length > 0) throw stillAttached(holders);
  // Attachments to ended deployments are detached by the deletion.
  if (record.action?.kind === 'detach') return;
  // A resize without an answer must not keep the volume billed.
  if (record.action?.kind === 'resize' && hasTimedOut(record.action, now, options)) return;
  assertIdle(record, now, options);
}

export function stillAttached(deploymentIds: readonly string[]): ApiError {
  return invalid('', 'The volume is attached to an active deployment; detach it first.', {
    deploymentIds: [...deploymentIds],
  });
}
