import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { ApiError } from '../../contract/errors.ts';
import { isLastAttempt, toRefusal, withAttempt } from '../../model/intent.ts';
import type { Transaction } from '../../model/store.ts';
import { logNames, type VolumeIntent, type VolumeRecord } from '../../model/volume-record.ts';
import { type Shortage, shortageOf } from '../../providers/capabilities.ts';
import { refusedError } from '../../providers/intended-call.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import { toCall, undoIntent } from '../../volumes/settle.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from '../../volumes/snapshot.ts';
import type { SyncContext } from '../context.ts';

/** Dependencies of the steps of a volume. */
export interface VolumeContext extends SyncContext {
  volumeProvider: VolumeProvider;
}

/** The provider's view of a volume. `snapshot` was read before the provider was asked. */
export interface Shown {
  snapshot: VolumeSnapshot;
  volume: ProviderVolume;
  /** Whether it is the answer to the intent's call, which the provider has thereby accepted. */
  isAccepted?: boolean;
}

/** The volume as its provider shows it; null: 404. @throws {ProviderError} */
export async function getVolume(
  { provider, call }: SyncContext,
  providerVolumeId: string,
): Promise<ProviderVolume | null> {
  const volume = await orProviderError(provider.client.getVolume(providerVolumeId, call));
  if (!(volume instanceof ProviderError)) return volume;
  if (volume.problem === 'not_found') return null;
  throw volume;
}

/** A volume whose intent is being sent, as it was committed. */
export type Sent = VolumeSnapshot & { record: VolumeRecord & { action: VolumeIntent } };

/** Commits an attempt. Returns null if the call must not be made. `prepare` may write more and prevent the call. */
export async function beginAttempt(
  context: VolumeContext,
  { record: { id, action: asked } }: VolumeSnapshot,
  prepare: (tx: Transaction, snapshot: VolumeSnapshot) => Promise<boolean> = async () => true,
): Promise<Sent | null> {
  const { store, clock } = context;
  const sent = await transactOnVolume(store, id, async (tx, snapshot): Promise<Sent | null> => {
    const { action } = snapshot.record;
    if (action === null || asked === null || !isLastAttempt(action, asked)) return null;
    if (!(await prepare(tx, snapshot))) return null;
    const attempted = withAttempt(action, clock.now());
    await writeVolume(tx, snapshot.record, { action: attempted });
    const revision = snapshot.record.revision + 1;
    return { ...snapshot, record: { ...snapshot.record, action: attempted, revision } };
  });
  // Another process may hold the lease, and may already have seen the attempt.
  return sent !== null && context.isLeaseHeld() ? sent : null;
}

/** Writes `change` if the attempt is still the last one. Returns false if it is not. */
export async function onLastAttempt(
  { store }: VolumeContext,
  sent: Sent,
  change: (tx: Transaction, current: Sent) => Promise<boolean>,
): Promise<boolean> {
  const { id, action } = sent.record;
  return transactOnVolume(store, id, async (tx, current) => {
    const { action: now } = current.record;
    if (now === null || !isLastAttempt(now, action)) return false;
    return change(tx, { ...current, record: { ...current.record, action: now } });
  });
}

/** Withdraws an intent in a transaction. Returns false if the intent must continue. */
type Undo = (tx: Transaction, current: Sent, at: number) => Promise<boolean>;

/** If no call had an effect, restores the earlier state and refuses the request. Returns whether that happened. */
export async function settleError(
  context: VolumeContext,
  sent: Sent,
  error: ProviderError,
  undo: Undo = undoIntent,
): Promise<boolean> {
  const { providerId, action } = sent.record;
  const { problem, code, said, status, mayHaveHappened } = error;
  const isProved = action.attempt === 1 ? !mayHaveHappened : isDecided(error);
  if (isProved && (await refuse(context, sent, toApiError(sent, error), undo))) {
    const fields = { ...logNames(sent.record), provider: providerId, action: action.kind };
    context.log.warn({ ...fields, problem, code, said }, 'the provider refused a change of a volume');
    return true;
  }
  await onLastAttempt(context, sent, async (tx, { record }) => {
    if (status !== null) await writeVolume(tx, record, { action: { ...record.action, answer: status } });
    return true;
  });
  return false;
}

/** Withdraws the intent and stores the reason for the waiting request. Returns false if the intent continues. */
export function refuse(
  context: VolumeContext,
  sent: Sent,
  reason: ApiError,
  undo: Undo = undoIntent,
): Promise<boolean> {
  return onLastAttempt(context, sent, async (tx, current) => {
    if (!(await undo(tx, current, context.clock.now()))) return false;
    const undone = await tx.volumes.byId(current.record.id);
    if (undone !== null) await writeVolume(tx, undone, { refusal: toRefusal(current.record.action, reason) });
    return true;
  });
}

/** These problems concern the caller or the rate, so they prove nothing about an earlier call. */
export const ABOUT_THIS_CALL: readonly ProviderError['problem'][] = [
  'unreachable',
  'unauthorized',
  'limited',
];

/** Whether the refusal is about the change itself, not about the caller, the rate or a running operation. */
export function isDecided({ mayHaveHappened, code, problem }: ProviderError): boolean {
  return !mayHaveHappened && code !== 'operation_in_progress' && !ABOUT_THIS_CALL.includes(problem);
}

const shortages: Readonly<Record<Shortage, string>> = {
  out_of_stock:
    'does not have enough free storage there: try a smaller size, another region or another provider',
  quota_exceeded: 'allows this marketplace no more storage: try another provider',
};

/** The error for the user. The provider's own text goes to the log only. */
export function toApiError({ record }: Sent, error: ProviderError): ApiError {
  const { providerId, volumeId } = record;
  const reason = shortageOf(error);
  if (reason !== undefined)
    return new ApiError('VALIDATION_ERROR', `${providerId} ${shortages[reason]}; nothing changed.`, {
      details: { volumeId, reason },
    });
  return refusedError(toCall(record), error);
}
