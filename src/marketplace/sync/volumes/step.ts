import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import type { ApiError } from '../../contract/errors.ts';
import { type Intent, isLastAttempt, toRefusal, withAttempt } from '../../model/intent.ts';
import type { Transaction } from '../../model/store.ts';
import { logNames } from '../../model/volume-record.ts';
import { refusedError } from '../../providers/intended-call.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import { type AskedVolume, putIntent, toCall, withdraw } from '../../volumes/intents.ts';
import { currentOf, transactOnVolume, type VolumeSnapshot } from '../../volumes/snapshot.ts';
import type { SyncContext } from '../context.ts';

/** Dependencies of the steps of a volume. */
export interface VolumeContext extends SyncContext {
  volumeProvider: VolumeProvider;
}

/** The provider's view of a volume. `snapshot` was read before the provider was asked. */
export interface Shown {
  snapshot: VolumeSnapshot;
  volume: ProviderVolume;
}

/** A volume with one of its intents. */
export type Pending = VolumeSnapshot & AskedVolume;

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

/**
 * Commits an attempt, then makes the call and writes its answer. Returns the answer, or null if nothing was sent, the
 * change was refused or the volume has changed. `prepare` may write more with the attempt and prevent the call.
 * @throws {ProviderError} if the outcome is not known
 */
export async function send(
  context: VolumeContext,
  pending: Pending,
  call: () => Promise<ProviderVolume>,
  prepare?: (tx: Transaction, snapshot: VolumeSnapshot) => Promise<boolean>,
): Promise<Shown | null> {
  const sent = await beginAttempt(context, pending, prepare);
  if (sent === null) return null;
  const volume = await orProviderError(call());
  if (volume instanceof ProviderError) {
    if (await settleError(context, sent, volume)) return null;
    throw volume;
  }
  const snapshot = await writeAnswer(context, sent, 'accepted');
  return snapshot && { snapshot, volume };
}

/** Commits an attempt. Returns null if the call must not be made. */
export async function beginAttempt(
  context: VolumeContext,
  { record: { id }, intent: asked }: Pending,
  prepare: (tx: Transaction, snapshot: VolumeSnapshot) => Promise<boolean> = async () => true,
): Promise<Pending | null> {
  const { store, clock } = context;
  const sent = await transactOnVolume(store, id, async (tx, snapshot) => {
    const intent = currentOf(snapshot, asked);
    if (intent === null || !isLastAttempt(intent, asked) || !(await prepare(tx, snapshot))) return null;
    return write(tx, { ...snapshot, intent: withAttempt(intent, clock.now()) });
  });
  // Another process may hold the lease, and may already have seen the attempt.
  return sent !== null && context.isLeaseHeld() ? sent : null;
}

/** Writes the intent. Returns the volume with it. */
async function write(tx: Transaction, { record, attachments, intent }: Pending): Promise<Pending> {
  return {
    intent,
    record: await putIntent(tx, record, intent),
    attachments: attachments.map((it) => (it.deploymentId === intent.deploymentId ? { ...it, intent } : it)),
  };
}

/** Calls `change` with the volume if the attempt is still the last one; otherwise returns null. */
export async function onLastAttempt<T>(
  { store }: VolumeContext,
  { record: { id }, intent: sent }: Pending,
  change: (tx: Transaction, current: Pending) => Promise<T>,
): Promise<T | null> {
  return transactOnVolume(store, id, async (tx, snapshot) => {
    const intent = currentOf(snapshot, sent);
    return intent !== null && isLastAttempt(intent, sent) ? change(tx, { ...snapshot, intent }) : null;
  });
}

/** Returns the volume with the answer; null: it has changed since the attempt. */
function writeAnswer(
  context: VolumeContext,
  sent: Pending,
  answer: Intent['answer'],
): Promise<Pending | null> {
  return onLastAttempt(context, sent, async (tx, current) => {
    const written = await write(tx, { ...current, intent: { ...current.intent, answer } });
    return current.record.revision === sent.record.revision ? written : null;
  });
}

/** If no call had an effect, withdraws the intent and refuses the request. Returns whether that happened. */
export async function settleError(
  context: VolumeContext,
  sent: Pending,
  error: ProviderError,
): Promise<boolean> {
  const { record, intent } = sent;
  const { problem, code, said, status } = error;
  if (isUndone(intent, error) && (await refuse(context, sent, refusedError(toCall(sent), error)))) {
    const fields = { ...logNames(record), action: intent.kind };
    context.log.warn({ ...fields, problem, code, said }, 'the provider refused a change of a volume');
    return true;
  }
  if (status !== null) await writeAnswer(context, sent, status);
  return false;
}

/** Whether a request waits for the intent. The attachments of a launch and of an ended deployment are tried again. */
function isAsked({ kind, until }: Pending['intent']): boolean {
  return until !== null || kind === 'create';
}

/** Whether the error proves that neither this call nor an earlier one for the intent had an effect. */
function isUndone(intent: Pending['intent'], error: ProviderError): boolean {
  if (intent.attempt === 1 && isAsked(intent)) return !error.mayHaveHappened;
  // An earlier detach may have detached the volume.
  return isDecided(error) && (intent.attempt === 1 || intent.kind !== 'detach');
}

/** Withdraws the intent and stores the reason for a waiting request. Returns false if the intent continues. */
export async function refuse(context: VolumeContext, pending: Pending, reason: ApiError): Promise<boolean> {
  const isWithdrawn = await onLastAttempt(context, pending, (tx, { intent, ...snapshot }) => {
    const refusal = isAsked(intent) ? toRefusal(intent, reason) : snapshot.record.refusal;
    return withdraw(tx, snapshot, intent, context.clock.now(), refusal);
  });
  return isWithdrawn === true;
}

/** These problems concern the caller or the rate, so they prove nothing about an earlier call. */
export const ABOUT_THIS_CALL: readonly ProviderError['problem'][] = [
  'unreachable',
  'unauthorized',
  'limited',
];

/** Whether the refusal is about the change itself, not about the caller, the rate or a running operation. */
function isDecided({ mayHaveHappened, code, problem }: ProviderError): boolean {
  return !mayHaveHappened && code !== 'operation_in_progress' && !ABOUT_THIS_CALL.includes(problem);
}
