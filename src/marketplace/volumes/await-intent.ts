import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { fromRefusal, isUnsent } from '../model/intent.ts';
import type { VolumeIntent, VolumeRecord } from '../model/volume-record.ts';
import { whenWritten } from '../model/waiting.ts';
import { describeSlow } from '../providers/capabilities.ts';
import type { AskedVolume } from './intents.ts';
import { readVolumeSnapshot, transactOnVolume, type VolumeSnapshot } from './snapshot.ts';
import { undoIntent } from './undo.ts';

interface Awaited {
  isDone(snapshot: VolumeSnapshot): boolean;
  goesOn?(snapshot: VolumeSnapshot): boolean;
}

/** The name of the call in messages. */
export function nounOf({ kind }: Pick<VolumeIntent, 'kind'>): string {
  return kind === 'delete' ? 'deletion' : kind;
}

/**
 * Waits until the requested change is done or the deadline of the intent passes, and returns the volume. An intent that
 * was not sent by then is withdrawn. `goesOn`: whether the change is still in progress although its intent was
 * replaced.
 *
 * @throws {ApiError} the provider's refusal; PROVIDER_REFUSED if nothing was sent: nothing changed;
 *   PROVIDER_SLOW (M: 504) if it was sent but the row does not show its outcome
 */
export async function awaitVolume(
  deps: Pick<Deps, 'store' | 'clock'>,
  asked: AskedVolume,
  awaited: Awaited,
): Promise<VolumeSnapshot> {
  const { store, clock } = deps;
  const deadline = asked.action.until ?? clock.now();
  const read = async () => isOver(await readVolumeSnapshot(store.read, asked.id), asked, awaited);
  const done = await whenWritten(deps, asked.id, deadline, read, { isJustWritten: true });
  if (done !== null) return done;
  const { snapshot, isWithdrawn } = await transactOnVolume(store, asked.id, async (tx, snapshot) => {
    const { action } = snapshot.record;
    if (action?.id !== asked.action.id || !isUnsent(action)) return { snapshot, isWithdrawn: false };
    const withdrawn = { ...snapshot, record: { ...snapshot.record, action } };
    return { snapshot, isWithdrawn: await undoIntent(tx, withdrawn, clock.now()) };
  });
  if (isWithdrawn) throw notSent(asked, asked.action);
  const late = isOver(snapshot, asked, awaited);
  if (late !== null) return late;
  throw slow(asked, snapshot.record.action?.answer ?? null);
}

function slow(
  { providerId, volumeId, action }: AskedVolume,
  answer: VolumeIntent['answer'] | 'unknown',
): ApiError {
  const names = { providerId, what: nounOf(action), thing: 'volume' } as const;
  return new ApiError('PROVIDER_SLOW', describeSlow(names, answer), { details: { volumeId } });
}

/** The error when nothing was sent to the provider in time. */
export function notSent(
  { providerId, volumeId }: VolumeRecord,
  action: Pick<VolumeIntent, 'kind'>,
): ApiError {
  return new ApiError(
    'PROVIDER_REFUSED',
    `${providerId} was not reached for the ${nounOf(action)}; nothing changed.`,
    { details: { volumeId } },
  );
}

/**
 * The volume once the change is done; null: still in progress. An intent missing from the row proves neither success
 * nor refusal.
 *
 * @throws {ApiError} if the intent is over and the change was not done, or the outcome is unknown
 */
function isOver(
  snapshot: VolumeSnapshot | null,
  asked: AskedVolume,
  { isDone, goesOn }: Awaited,
): VolumeSnapshot | null {
  if (snapshot === null) throw new Error(`the volume ${asked.id} no longer exists`);
  const { refusal, action } = snapshot.record;
  if (refusal?.id === asked.action.id) throw fromRefusal(refusal);
  if (isDone(snapshot)) return snapshot;
  if (action?.id === asked.action.id || goesOn?.(snapshot) === true) return null;
  throw slow(asked, 'unknown');
}
