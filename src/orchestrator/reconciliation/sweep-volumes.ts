import { forEachInSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import { idOf } from '../model/attempt.ts';
import type { ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import { type VolumeRecord, volumeLogNames } from '../model/records.ts';
import { lockInstances } from '../model/rows.ts';
import type { Reader } from '../model/store.ts';
import { confirmVolume } from '../platform/confirm-gone.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { Listed } from '../platform/shared-listing.ts';
import {
  isUnderWay,
  removeAgain,
  removeOtherAttempt,
  removeWithoutRow,
} from '../platform/superseded-attempts.ts';
import { isNewlyVisible, markVolumeVisible } from '../platform/visibility.ts';
import { workOnAttachments } from '../volumes/attach.ts';
import { claimActualSize, withSize } from '../volumes/storage.ts';
import { updateAttachmentStatus } from '../volumes/transition.ts';
import { adoptVolume } from './adopt-volume.ts';
import { Deviations } from './deviations.ts';
import { ResourcesWithoutRow } from './without-row.ts';

const ORPHAN =
  'a volume with our tag has no row, or a later name than its row: it may cost money and hold data. Inspect it on the ' +
  'platform; `berth orphans rm` removes it';
/** How long the row of an unchanged volume is not read again, in milliseconds. */
const OWNED_FOR_MS = 10 * 60_000;

interface Owned {
  readAt: number;
  /** See {@link toStateKey}. */
  stateKey: string;
}

/**
 * Handles listed volumes as `MachineSweep` handles machines, and also volumes that differ from their live row in two
 * listings.
 */
export class VolumeSweep {
  readonly #context: ReconcileContext;
  readonly #isStopped: () => boolean;
  readonly #withoutRow: ResourcesWithoutRow<ObservedVolume>;
  readonly #deviations: Deviations;
  #orphans: ObservedVolume[] = [];
  /** The volumes of the last listing that matched their live row, with the time of that read. */
  #owned = new Map<OwnerRef, Owned>();
  /** The state of each volume in the last listing. */
  #before: ReadonlyMap<OwnerRef, string> = new Map();

  constructor(context: ReconcileContext, isStopped: () => boolean) {
    this.#context = context;
    this.#isStopped = isStopped;
    this.#deviations = new Deviations(context, 'volume');
    this.#withoutRow = new ResourcesWithoutRow(
      context,
      'volume',
      (volume) => adoptVolume(context, volume),
      ({ ref }) => confirmVolume(context, ref),
    );
  }

  /** Returns false if it was stopped before it finished. */
  async sweep(listed: Listed<ObservedVolume>): Promise<boolean> {
    const { items, begunAt, isTrusted, isComplete } = listed;
    const { sightings, alarms, platform, log } = this.#context;
    const before = this.#before;
    const volumes = [...items.values()];
    this.#orphans = [];
    if (isTrusted) this.#before = new Map(volumes.map((volume) => [volume.ref, toStateKey(volume)]));
    const owned = this.#owned;
    this.#owned = new Map();
    this.#withoutRow.begin();
    const pace = { atOnce: 1, isStopped: this.#isStopped };
    const isOver = await forEachInSlices(volumes, pace, async (volume) => {
      if (this.#withoutRow.isForeign(volume)) return;
      const stateKeyBefore = isTrusted ? before.get(volume.ref) : undefined;
      const known = await this.#check(volume, owned.get(volume.ref), stateKeyBefore, begunAt);
      if (known !== null) this.#owned.set(volume.ref, known);
    });
    if (!isOver) return false;
    await this.#withoutRow.end(listed);
    await sightings.compared('volume', listed);
    const kind = {
      kind: 'orphan_volume' as const,
      platform,
      text: ORPHAN,
      subjectOf: ({ ref }: ObservedVolume) => ref,
      describe: ({ createdAt }: ObservedVolume) => `made ${new Date(createdAt).toISOString()}`,
      fields: ({ ref }: ObservedVolume) => ({ ref }),
      log,
    };
    if (!isTrusted) return true;
    raiseFolded(alarms, kind, this.#orphans, isComplete);
    await this.#deviations.sweep(listed);
    return true;
  }

  /**
   * Compares a volume with its row. Null if it has no live row or differs from it. It is handled once two listings show
   * the same.
   */
  async #check(
    volume: ObservedVolume,
    known: Owned | undefined,
    stateKeyBefore: string | undefined,
    begunAt: number,
  ): Promise<Owned | null> {
    const { sightings, platform, clock, store, log } = this.#context;
    const now = clock.now();
    const stateKey = toStateKey(volume);
    if (known?.stateKey === stateKey && Math.abs(now - known.readAt) < OWNED_FOR_MS) return known;
    const row = await store.read.volumes.byId(idOf(volume.ref));
    const isListedAgain = stateKeyBefore !== undefined;
    if (row === null) {
      // Berth never removes a volume without a row on its own, since it holds data.
      const isRemoved = await removeWithoutRow(this.#context, volume.ref, begunAt);
      if (!isRemoved && (await this.#withoutRow.adopt(volume)) && isListedAgain) this.#orphans.push(volume);
      return null;
    }
    if (row.platform !== platform) return null;
    if (row.ownerRef !== volume.ref) {
      if (isListedAgain) await this.#judgeAttempt(row, volume);
      return null;
    }
    if (hasEnded(row)) {
      // A late create made it, or it was wrongly proved gone.
      if (isListedAgain && (await removeAgain(this.#context, 'volume', row.id, begunAt)))
        log.error(
          { ...volumeLogNames(row), ref: volume.ref },
          'a deleted volume is still there: it is deleted again',
        );
      return null;
    }
    if (isNewlyVisible(row, begunAt, this.#context)) await markVolumeVisible(this.#context, row);
    if (volume.host !== undefined && volume.host !== row.host) await this.#recordHost(row, volume.host);
    const found = await compareVolume(this.#context, row, volume);
    // After a restore, the row is more likely outdated.
    if (found === 'more' && stateKey === stateKeyBefore && !sightings.isRestored)
      await reconcileDrift(this.#context, row, volume);
    return found === 'as-recorded' ? { readAt: now, stateKey } : null;
  }

  /**
   * Handles a later attempt: the copy of a move that is not in a restored backup. It becomes the volume if the original
   * is gone.
   */
  async #judgeAttempt({ id, ownerRef }: VolumeRecord, volume: ObservedVolume): Promise<void> {
    const { ref, host } = volume;
    const { store, clock, log } = this.#context;
    if ((await removeOtherAttempt(this.#context, 'volume', { id, ref })) !== 'later') return;
    const original = await confirmVolume(this.#context, ownerRef);
    // While the original exists, either may have the data. Both stay, with an alarm.
    if (original.answer !== 'gone') return void this.#orphans.push(volume);
    await store.transact(async (tx) => {
      const row = await tx.volumes.byId(id);
      if (row === null || row.ownerRef !== ownerRef || row.destroyOrder !== null) return;
      if (await isUnderWay(tx, { id, ref }, clock.now())) return;
      await tx.volumes.update({ ...row, ownerRef: ref, host: host ?? null });
      log.warn(
        { ...volumeLogNames(row), ref },
        'a volume is on the platform under a later name than its row had',
      );
    });
  }

  async #recordHost({ id, ownerRef }: VolumeRecord, host: string): Promise<void> {
    await this.#context.store.transact(async (tx) => {
      const row = await tx.volumes.byId(id);
      if (row !== null && row.ownerRef === ownerRef) await tx.volumes.update({ ...row, host });
    });
  }
}

/** Whether the platform must no longer have it: it is deleted, or its create was refused. */
function hasEnded({ deletedAt, status }: VolumeRecord): boolean {
  return deletedAt !== null || status === 'ERROR';
}

// A call that reaches the platform long after its caller gave it up can attach or grow a volume after the end of its
// work.

/** A key that is equal if two listings show the volume with the same size and attachments. */
function toStateKey({ sizeGb, attachedTo }: ObservedVolume): string {
  return [sizeGb, ...[...attachedTo].sort()].join(' ');
}

/** `open`: it has open work. `more`: on the platform it is larger, or attached to more instances, than recorded. */
async function compareVolume(
  { store: { read } }: Pick<ReconcileContext, 'store'>,
  row: VolumeRecord,
  volume: ObservedVolume,
): Promise<'open' | 'more' | 'as-recorded'> {
  if (!isSettled(row) || (await read.work.of(row.id)) !== null) return 'open';
  const isMore = withSize(row, volume) !== row || (await unrecordedInstances(read, row, volume)).length > 0;
  return isMore ? 'more' : 'as-recorded';
}

/**
 * Records and claims the size on the platform, even beyond the capacity, and detaches instances without a recorded
 * attachment.
 */
async function reconcileDrift(
  { store, clock, log }: Pick<ReconcileContext, 'store' | 'clock' | 'log'>,
  row: VolumeRecord,
  volume: ObservedVolume,
): Promise<void> {
  const holders = await unrecordedInstances(store.read, row, volume);
  await store.transact(async (tx) => {
    await lockInstances(tx, holders);
    const current = await tx.volumes.byId(row.id);
    if (current === null || !isSettled(current) || (await tx.work.of(row.id)) !== null) return;
    const grown = withSize(current, volume);
    if (grown !== current) {
      await tx.volumes.update(grown);
      await claimActualSize(tx, grown);
      const { sizeGb } = grown;
      log.warn(
        { ...volumeLogNames(row), sizeGb },
        'the platform has enlarged a volume after the resize was given up',
      );
    }
    const recorded = await tx.volumes.attachmentsOfVolume(row.id);
    const unrecorded = holders.filter((holder) => !recorded.some(({ instanceId }) => instanceId === holder));
    for (const instance of unrecorded) {
      await tx.volumes.putAttachment({ volumeId: row.id, instanceId: instance, state: 'detaching' });
      log.warn(
        { ...volumeLogNames(row), instance },
        'the platform has attached a volume after the attach was given up: it is detached',
      );
    }
    if (unrecorded.length > 0)
      await workOnAttachments(tx, await updateAttachmentStatus(tx, grown), clock.now());
  });
}

function isSettled({ status, deletedAt }: VolumeRecord): boolean {
  return deletedAt === null && (status === 'AVAILABLE' || status === 'ATTACHED');
}

/** Instances that have the volume on the platform without a recorded attachment. */
async function unrecordedInstances(
  read: Reader,
  { id }: VolumeRecord,
  { attachedTo }: ObservedVolume,
): Promise<string[]> {
  const recorded = await read.volumes.attachmentsOfVolume(id);
  const rows = await Promise.all(attachedTo.map((ref) => read.instances.byOwnerRef(ref)));
  return rows.flatMap((row) =>
    row === null || recorded.some(({ instanceId }) => instanceId === row.id) ? [] : [row.id],
  );
}
