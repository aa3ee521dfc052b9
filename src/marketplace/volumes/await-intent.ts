import type { Deps } from '../deps.ts';
import { fromRefusal, isUnsent } from '../model/intent.ts';
import { whenWritten } from '../model/waiting.ts';
import { type IntendedCall, notReached, slowError } from '../providers/intent-errors.ts';
import type { AskedVolume } from './intents.ts';
import { readVolumeSnapshot, transactOnVolume, type VolumeSnapshot } from './snapshot.ts';
import { undoIntent } from './undo.ts';

interface Awaited {
  isDone(snapshot: VolumeSnapshot): boolean;
  goesOn?(snapshot: VolumeSnapshot): boolean;
}

/** The call of an intent, as errors name it. */
export function toCall({ providerId, volumeId, action: { kind } }: AskedVolume): IntendedCall {
  const what = kind === 'delete' ? 'deletion' : kind;
  return { providerId, what, thing: 'volume', details: { volumeId } };
}

/**
 * Waits until the change is done. An intent not sent by its deadline is withdrawn. `goesOn` says whether a change is
 * still in progress although its intent was replaced.
 * @throws {ApiError} the provider's refusal; PROVIDER_REFUSED: not sent; PROVIDER_SLOW (M: 504): sent, and the row does
 * not show its outcome
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
  if (isWithdrawn) throw notReached(toCall(asked));
  const late = isOver(snapshot, asked, awaited);
  if (late !== null) return late;
  throw slowError(toCall(asked), snapshot.record.action?.answer ?? null);
}

/**
 * Returns null while the intent is in progress. An intent missing from the row proves neither success nor refusal.
 * @throws {ApiError} if the intent ended without success, or if its outcome is unknown
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
  throw slowError(toCall(asked), 'unknown');
}
