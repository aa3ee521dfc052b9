import { berthAnswerSchema, isUsableId } from '../../../client/answers.ts';
import { type Identified, orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { CreateVolumeRequest, Volume as ProviderVolume } from '../../../contract/volume.ts';
import { isUnsent } from '../../model/intent.ts';
import { isNamedForAnother } from '../../model/names.ts';
import { type Reader, StoreUnavailable } from '../../model/store.ts';
import { logNames, type VolumeIntent, type VolumeRecord } from '../../model/volume-record.ts';
import { endUnmade } from '../../volumes/intents.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from '../../volumes/snapshot.ts';
import { beginAttempt, onLastAttempt, type Pending, settleError, type VolumeContext } from './step.ts';

/** Berth keeps idempotency keys for 24 hours; this leaves one hour as a margin. */
const KEY_IS_KNOWN_MS = 23 * 3_600_000;

/** How often a write of the id of a new volume is attempted, and the pause in between. */
const RECORDED_WITHIN_TRIES = 5;
const RECORDED_AGAIN_MS = 1_000;

/**
 * Sends the create of a volume. O: has no list of volumes in which a lost create could be found. A create is therefore
 * repeated, with the same key, only at providers that support idempotency keys.
 * @throws {ProviderError}
 */
export async function syncCreation(context: VolumeContext, snapshot: VolumeSnapshot): Promise<void> {
  const { record } = snapshot;
  const { action: intent } = record;
  if (intent?.kind !== 'create') return;
  const pending = { ...snapshot, intent };
  const step = nextStep(context, record, intent);
  if (step === 'give up') await giveUp(context, pending);
  const sent = step === 'send' ? await beginAttempt(context, pending) : null;
  if (sent === null) return;
  const { client } = context.provider;
  const made = await orProviderError(
    client.createVolume(toRequest(context, record), record.id, context.call),
  );
  if (!(made instanceof ProviderError)) return keepMade(context, record, made);
  // A refusal of this call does not end an earlier call that may still make the volume.
  const mayBeMade = mayBeRunning(context, intent.sentAt, sent.intent.sentAt ?? 0);
  if (!mayBeMade && (await settleError(context, sent, made))) return;
  if (made.mayHaveHappened && canRepeat(context, record) === false) await giveUp(context, sent);
  throw made;
}

function nextStep(
  context: VolumeContext,
  record: VolumeRecord,
  intent: VolumeIntent,
): 'send' | 'wait' | 'give up' {
  if (isUnsent(intent)) return 'send';
  const now = context.clock.now();
  const isRepeatable = canRepeat(context, record);
  if (isRepeatable === null) return 'wait';
  const isRunning = mayBeRunning(context, intent.sentAt, now);
  // A paused process may still get the answer.
  if (!isRepeatable) return isRunning ? 'wait' : 'give up';
  const isAwaited = now - intent.since < context.options.lifecycleWaitMs;
  return isRunning && !isAwaited ? 'wait' : 'send';
}

function toRequest(
  { volumeProvider: { profile } }: VolumeContext,
  { providerName: name, sizeGb: size_gb, region, cloudId }: VolumeRecord,
): CreateVolumeRequest {
  const cloud = profile.regions[region]?.clouds?.find(({ id }) => id === cloudId);
  return { name, size_gb, region, type: cloud?.type ?? profile.type };
}

/** Whether repeating the create makes no second volume. Null: the catalog has not been read yet. */
function canRepeat(
  { clock, provider: { catalog } }: VolumeContext,
  { createdAt }: VolumeRecord,
): boolean | null {
  if (catalog.refreshedAt === null) return null;
  const isBerth = [...catalog.offers.values()].some(
    ({ extras }) => berthAnswerSchema.safeParse(extras['berth']).success,
  );
  return isBerth && clock.now() - createdAt < KEY_IS_KNOWN_MS;
}

/** Whether a call sent at `sentAt` may still be in transit or in progress at the provider. */
function mayBeRunning({ options }: VolumeContext, sentAt: number | null, now: number): boolean {
  return sentAt !== null && now - sentAt < 2 * options.polling.callTimeoutMs;
}

/** Records the new volume even if another process holds the lease: only this process knows the id. */
async function keepMade(
  context: VolumeContext,
  record: VolumeRecord,
  made: Identified<ProviderVolume>,
): Promise<void> {
  const { clock, log, unfenced } = context;
  for (let tries = 1; ; tries++)
    try {
      return await recordMade({ ...context, store: unfenced }, record, made);
    } catch (error) {
      if (error instanceof StoreUnavailable && tries < RECORDED_WITHIN_TRIES) {
        await new Promise<void>((resolve) => void clock.setTimer(RECORDED_AGAIN_MS, resolve));
        continue;
      }
      log.error(
        { ...logNames(record), err: error, providerVolumeId: made.id },
        'could not write the id of a volume that the provider made: if the volume becomes `error` here, delete it there',
      );
      throw error;
    }
}

/** What an operator reads about a volume that its provider made but that the row does not have as its only one. */
const reports = {
  unusable:
    'the provider made a volume whose id cannot be used: the create failed, and the volume may cost money; find it at the provider by its name, and delete it there',
  taken:
    'the provider answered a create with the volume of another create: nothing is assigned or deleted; ask the provider which volume it made',
  second: 'the provider made a second volume for one create: delete it there',
  'too late': 'the provider made a volume after its create was given up: it is being deleted there',
};

/**
 * Writes the id of the new volume, if it can be used. If the create was given up, the volume is deleted at the provider.
 * A volume that another row has is not assigned: deleting one would destroy the other's data.
 */
async function recordMade(
  context: VolumeContext,
  { id, providerId }: VolumeRecord,
  made: Identified<ProviderVolume>,
): Promise<void> {
  const { store, clock, log, installationId } = context;
  const { id: providerVolumeId } = made;
  const { known, report } = await transactOnVolume(
    store,
    id,
    async (tx, snapshot) => {
      const { record: known } = snapshot;
      const isUsable = isUsableId(providerVolumeId);
      const isTaken =
        isUsable &&
        (isNamedForAnother(made, installationId, known.providerName) ||
          (await volumeHolderOf(tx, known, providerVolumeId)) !== null);
      if (!isUsable || isTaken) {
        await endUnmade(tx, snapshot, { status: 'error' });
        return { known, report: isTaken ? ('taken' as const) : ('unusable' as const) };
      }
      if (known.providerVolumeId !== null)
        return { known, report: known.providerVolumeId === providerVolumeId ? null : ('second' as const) };
      const isWaitedFor = known.status === 'creating';
      const deletedAt = known.deletedAt ?? clock.now();
      await writeVolume(tx, known, {
        providerVolumeId,
        ...(!isWaitedFor && { cleanup: 'wanted', deletedAt }),
        ...(known.status === 'error' && { status: 'deleting' }),
      });
      return { known, report: isWaitedFor ? null : ('too late' as const) };
    },
    // Serialises creates that are answered with the same id, so that the second sees the first.
    (tx) => tx.losses.lock(providerId),
  );
  if (report === null) return;
  const ids = { providerVolumeId: providerVolumeId.slice(0, 255), recorded: known.providerVolumeId };
  const fields = { ...logNames(known), name: known.providerName, ...ids };
  log[report === 'too late' ? 'warn' : 'error'](fields, reports[report]);
}

/** Ends a create whose outcome is unknown. The volume is not billed, and an operator must check the provider. */
async function giveUp(context: VolumeContext, sent: Pending): Promise<void> {
  const { record } = sent;
  if (!(await onLastAttempt(context, sent, (tx, current) => endUnmade(tx, current, { status: 'error' }))))
    return;
  context.log.error(
    { ...logNames(record), name: record.providerName },
    'the answer to the create of a volume was lost: check the provider for a volume of this name, and delete it there',
  );
}

/** Another volume that has this one of the provider and whose deletion is not proved. Null: there is none. */
export async function volumeHolderOf(
  { volumes }: Pick<Reader, 'volumes'>,
  { id, providerId }: Pick<VolumeRecord, 'id' | 'providerId'>,
  providerVolumeId: string,
): Promise<VolumeRecord | null> {
  const records = await volumes.byProviderVolume(providerId, providerVolumeId);
  return records.find((it) => it.id !== id && it.cleanup !== 'done') ?? null;
}
