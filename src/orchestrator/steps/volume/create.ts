import { recordedOrder } from '../../model/destroy-order.ts';
import type { ObservedVolume, Step, VolumeSpec } from '../../model/platform-driver.ts';
import { type VolumeRecord, volumeLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { toNote } from '../../volumes/note.ts';
import { transitionVolume, updateAttachmentStatus } from '../../volumes/transition.ts';
import { afterCreate, atItsHost, findEarlierCreate, isRefused, waitForEarlier } from '../adopt-or-create.ts';
import { type StepContext, volumesOf } from '../context.ts';
import { alone, openNextAttempt, placeVolume } from '../place.ts';
import { describeFailure, type Failed, retry, retryFailed } from '../retry.ts';
import { finish, type Next, settleVolume, whilePending } from '../settle.ts';

/** CREATING → AVAILABLE, then the attachments requested with the create. */
export async function stepCreateVolume(
  context: StepContext,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const attempted = await findOrCreate(context, lease, record);
  await settleVolume(
    context,
    lease,
    async (tx, current): Promise<Next> => {
      switch (attempted.outcome) {
        case 'open':
          return attempted.next;
        case 'pending':
          return whilePending(attempted);
        case 'done':
          return made(tx, current, attempted.value);
        case 'failed':
          return notMade(context, lease, tx, current, attempted);
      }
    },
    { visibility: afterCreate(attempted, lease, context.clock.now()) },
  );
}

/** `open`: nothing was sent, and an earlier create may still appear. */
type Attempted = Step<ObservedVolume> | { outcome: 'open'; next: Next };

/** Sends the create. It is sent even if the volume exists, since a repeated create returns the progress. */
async function findOrCreate(context: StepContext, lease: Lease, record: VolumeRecord): Promise<Attempted> {
  const volumes = volumesOf(context);
  const before = await findEarlierCreate(context, lease, record, {
    get: (ref) => volumes.get(ref),
    place: volumes.place,
  });
  if (before.answer === 'unknown') return { outcome: 'open', next: retry(context, lease, before.reason) };
  if (before.answer === 'absent' && before.waitMs > 0)
    return { outcome: 'open', next: waitForEarlier(lease, before.waitMs) };
  const located = atItsHost(record, before, volumes.place);
  const spec = toVolumeSpec(context, located);
  if (volumes.place === undefined || lease.cookie !== null || located.host !== null)
    return callStep(context, lease, (call) => volumes.create(spec, lease.cookie, call));
  return alone(context, async () => {
    const placed = await placeVolume(context, record, spec);
    if ('outcome' in placed) return placed;
    const placedSpec = toVolumeSpec(context, placed);
    return callStep(context, lease, (call) => volumes.create(placedSpec, lease.cookie, call));
  });
}

export function toVolumeSpec(
  { catalog, installationId }: Pick<StepContext, 'catalog' | 'installationId'>,
  record: VolumeRecord,
): VolumeSpec {
  return {
    ref: record.ownerRef,
    datacenter: catalog.regions.get(record.region)?.datacenter ?? record.region,
    sizeGb: record.sizeGb,
    type: record.type ?? undefined,
    note: toNote(installationId, record),
    ...(record.host !== null && { host: record.host }),
  };
}

async function made(tx: Transaction, record: VolumeRecord, { host }: ObservedVolume): Promise<Next> {
  const available = await transitionVolume(tx, { ...record, host: host ?? null }, 'AVAILABLE');
  const { status } = await updateAttachmentStatus(tx, available);
  return status === 'AVAILABLE' ? finish : { step: 'attach' };
}

async function notMade(
  context: StepContext,
  lease: Lease,
  tx: Transaction,
  record: VolumeRecord,
  failed: Failed,
): Promise<Next> {
  const next = await openNextAttempt(context, lease, tx, record, failed, {
    resourceKind: 'volume',
    places: context.driver.volumes?.place !== undefined,
    names: volumeLogNames(record),
    write: (changes) => tx.volumes.update({ ...record, ...changes }),
  });
  if (next !== undefined) return next;
  return isRefused(failed) ? refused(context, tx, record, failed) : retryFailed(context, lease, failed);
}

async function refused(
  { log, alarms, clock }: StepContext,
  tx: Transaction,
  record: VolumeRecord,
  failed: Failed,
): Promise<Next> {
  log.warn({ ...volumeLogNames(record), reason: describeFailure(failed) }, 'the platform refused a volume');
  for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(record.id))
    await tx.volumes.removeAttachment(volumeId, instanceId);
  const destroyOrder = recordedOrder({ reason: 'failed_create', by: alarms.server, at: clock.now() });
  await transitionVolume(tx, { ...record, destroyOrder }, 'ERROR');
  return { step: 'destroy' };
}
