import { berthAnswerSchema, isUsableId } from '../../../client/answers.ts';
import { type Identified, ProviderError } from '../../../client/orchestrator-client.ts';
import type { CreateVolumeRequest, Volume as ProviderVolume } from '../../../contract/volume.ts';
import { isUnsent } from '../../model/intent.ts';
import { isNamedForAnother } from '../../model/names.ts';
import { type Reader, StoreUnavailable, type Transaction } from '../../model/store.ts';
import { logNames, type VolumeIntent, type VolumeRecord } from '../../model/volume-record.ts';
import type { Provider } from '../../providers/provider.ts';
import { endUnmade } from '../../volumes/settle.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from '../../volumes/snapshot.ts';
import type { SyncContext } from '../context.ts';
import { beginAttempt, onLastAttempt, type Sent, settleError, type VolumeContext } from './step.ts';

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
  const { provider } = context;
  const { record } = snapshot;
  const { action } = record;
  if (action?.kind !== 'create') return;
  const step = nextStep(context, record, action);
  if (step === 'give up') await giveUp(context, { ...snapshot, record: { ...record, action } });
  const sent = step === 'send' ? await beginAttempt(context, snapshot) : null;
  if (sent === null) return;
  try {
    const made = await provider.client.createVolume(toRequest(context, record), record.id, context.call);
    await keepMade(context, record, made);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    // A refusal of this call does not end an earlier call that may still make the volume.
    const mayBeMade = mayBeRunning(context, action.sentAt, sent.record.action.sentAt ?? 0);
    if (!mayBeMade && (await settleError(context, sent, error))) return;
    if (error.mayHaveHappened && canRepeat(provider, record, context.clock.now()) === false)
      await giveUp(context, sent);
    throw error;
  }
}

function nextStep(
  context: VolumeContext,
  record: VolumeRecord,
  action: VolumeIntent,
): 'send' | 'wait' | 'give up' {
  const { clock, options, provider } = context;
  if (isUnsent(action)) return 'send';
  const now = clock.now();
  const isRepeatable = canRepeat(provider, record, now);
  if (isRepeatable === null) return 'wait';
  const isRunning = mayBeRunning(context, action.sentAt, now);
  // A paused process may still get the answer.
  if (!isRepeatable) return isRunning ? 'wait' : 'give up';
  const isAwaited = now - action.since < options.lifecycleWaitMs;
  return isRunning && !isAwaited ? 'wait' : 'send';
}

function toRequest(
  { volumeProvider: { profile } }: VolumeContext,
  record: VolumeRecord,
): CreateVolumeRequest {
  const cloud = profile.regions[record.region]?.clouds?.find(({ id }) => id === record.cloudId);
  const type = cloud?.type ?? profile.type;
  return {
    name: record.providerName,
    size_gb: record.sizeGb,
    region: record.region,
    type,
  };
}

/** Whether repeating the create makes no second volume. Null: the catalog has not been read yet. */
function canRepeat({ catalog }: Provider, { createdAt }: VolumeRecord, now: number): boolean | null {
  if (catalog.refreshedAt === null) return null;
  const isBerth = [...catalog.offers.values()].some(
    ({ extras }) => berthAnswerSchema.safeParse(extras['berth']).success,
  );
  return isBerth && now - createdAt < KEY_IS_KNOWN_MS;
}

/** Whether a call sent at `sentAt` may still be in transit or in progress at the provider. */
function mayBeRunning(
  { options: { polling } }: Pick<SyncContext, 'options'>,
  sentAt: number | null,
  now: number,
): boolean {
  return sentAt !== null && now - sentAt < 2 * polling.callTimeoutMs;
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
        { ...logNames(record), err: error, provider: record.providerId, providerVolumeId: made.id },
        'could not write the id of a volume that the provider made: if the volume becomes `error` here, delete it there',
      );
      throw error;
    }
}

/**
 * Writes the id of the new volume, if it can be used. If the create was given up, the volume is deleted at the provider.
 * A volume that another row has is not assigned: deleting one would destroy the other's data.
 */
async function recordMade(
  context: VolumeContext,
  { id, providerId }: VolumeRecord,
  made: Identified<ProviderVolume>,
): Promise<void> {
  const { store, clock, log } = context;
  const { id: providerVolumeId } = made;
  const write = async (tx: Transaction, snapshot: VolumeSnapshot) => {
    const { record } = snapshot;
    const isUsable = isUsableId(providerVolumeId);
    if (!isUsable || (await isMadeForAnother(context, tx, record, made))) {
      await endUnmade(tx, snapshot, { status: 'error' });
      return { known: record, outcome: isUsable ? 'taken' : 'unusable' };
    }
    if (record.providerVolumeId !== null) return { known: record, outcome: 'recorded' };
    const isWaitedFor = record.status === 'creating';
    const deletedAt = record.deletedAt ?? clock.now();
    await writeVolume(tx, record, {
      providerVolumeId,
      ...(!isWaitedFor && { cleanup: 'wanted', deletedAt }),
      ...(record.status === 'error' && { status: 'deleting' }),
    });
    return { known: record, outcome: isWaitedFor ? 'created' : 'too late' };
  };
  // Serialises creates that are answered with the same id, so that the second sees the first.
  const { known, outcome } = await transactOnVolume(store, id, write, (tx) => tx.losses.lock(providerId));
  const { providerName: name } = known;
  const fields = {
    ...logNames(known),
    provider: providerId,
    providerVolumeId: providerVolumeId.slice(0, 255),
  };
  if (outcome === 'unusable')
    log.error(
      { ...fields, name },
      'the provider made a volume whose id cannot be used: the create failed, and the volume may cost money; find it at the provider by its name, and delete it there',
    );
  if (outcome === 'taken')
    log.error(
      fields,
      'the provider answered a create with the volume of another create: nothing is assigned or deleted; ask the provider which volume it made',
    );
  if (outcome === 'too late')
    log.warn(fields, 'the provider made a volume after its create was given up: it is being deleted there');
  if (outcome === 'recorded' && known.providerVolumeId !== providerVolumeId)
    log.error(
      { ...fields, recorded: known.providerVolumeId },
      'the provider made a second volume for one create: delete it there',
    );
}

async function isMadeForAnother(
  { installationId }: VolumeContext,
  tx: Transaction,
  record: VolumeRecord,
  made: Identified<ProviderVolume>,
): Promise<boolean> {
  return (
    isNamedForAnother(made, installationId, record.providerName) ||
    (await volumeHolderOf(tx, record, made.id)) !== null
  );
}

/** Ends a create whose outcome is unknown. The volume is not billed, and an operator must check the provider. */
async function giveUp(context: VolumeContext, sent: Sent): Promise<void> {
  const { providerId, providerName } = sent.record;
  if (!(await onLastAttempt(context, sent, (tx, current) => endUnmade(tx, current, { status: 'error' }))))
    return;
  context.log.error(
    { ...logNames(sent.record), provider: providerId, name: providerName },
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
