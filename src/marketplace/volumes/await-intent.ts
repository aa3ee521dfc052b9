import type { Deps } from '../deps.ts';
import { isUnsent } from '../model/intent.ts';
import { awaitIntent, type IntendedCall } from '../providers/intended-call.ts';
import type { AskedVolume } from './intents.ts';
import { readVolumeSnapshot, transactOnVolume, type VolumeSnapshot } from './snapshot.ts';
import { undoIntent } from './undo.ts';

/** The call of an intent, as errors name it. */
export function toCall({ providerId, volumeId, action: { kind } }: AskedVolume): IntendedCall {
  const what = kind === 'delete' ? 'deletion' : kind;
  return { providerId, what, thing: 'volume', details: { volumeId } };
}

/** Waits for the intent as {@link awaitIntent} does. */
export function awaitVolume(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  asked: AskedVolume,
  awaited: {
    isDone(snapshot: VolumeSnapshot): boolean;
    goesOn?(snapshot: VolumeSnapshot): boolean;
  },
): Promise<VolumeSnapshot> {
  return awaitIntent({ store, clock }, asked, toCall(asked), {
    ...awaited,
    read: async () => {
      const snapshot = await readVolumeSnapshot(store.read, asked.id);
      if (snapshot === null) throw new Error(`the volume ${asked.id} no longer exists`);
      return snapshot;
    },
    withdraw: () =>
      transactOnVolume(store, asked.id, async (tx, seen) => {
        const { action } = seen.record;
        if (action?.id !== asked.action.id || !isUnsent(action)) return { seen, isWithdrawn: false };
        const withdrawn = { ...seen, record: { ...seen.record, action } };
        return { seen, isWithdrawn: await undoIntent(tx, withdrawn, clock.now()) };
      }),
  });
}
