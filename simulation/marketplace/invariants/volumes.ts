import { volumeTransitions } from '../../../src/marketplace/contract/volume.ts';
import type { AttachmentRecord, VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import { hold } from '../../kernel/violation.ts';
import type { SimulatedProvider } from '../providers/simulated-provider.ts';

/** I5, I16, I21, I15, I24: a commit leaves a volume in a valid state, with an action if anything is under way. */
export function volumeIsWhole(
  before: VolumeRecord | undefined,
  after: VolumeRecord,
  attachments: readonly AttachmentRecord[],
): void {
  const { id, status } = after;
  const words = [id];
  const states = attachments.map(({ state }) => state);
  if (before !== undefined) followsFrom(before, after);
  const isLive = status === 'available' || status === 'attached';
  hold(
    'I15',
    !isLive || (status === 'attached') === states.length > 0,
    () => `${id} is ${status}, and its attachments are ${states.join(', ') || 'none'}`,
    words,
  );
  const isWhole = attachments.every(({ state, intent }) => (state === 'attached') === (intent === null));
  hold('I24', isWhole, () => `${id} has an attachment whose intent does not fit its state: ${states}`, words);
}

function followsFrom(before: VolumeRecord, after: VolumeRecord): void {
  const words = [after.id];
  hold(
    'I5',
    before.status === after.status || volumeTransitions[before.status].includes(after.status),
    () => `${after.id} went from ${before.status} to ${after.status}`,
    words,
  );
  hold(
    'I16',
    after.revision > before.revision,
    () => `${after.id} was written again as ${after.revision}`,
    words,
  );
  hold(
    'I21',
    before.deletedAt === null || before.deletedAt === after.deletedAt,
    () => `${after.id} ended at ${before.deletedAt}, and then at ${after.deletedAt}`,
    words,
  );
}

/** I21, I3: a volume that is charged exists at its provider, and one that is deleted does not. */
export function volumeIsTrue(
  before: VolumeRecord | undefined,
  after: VolumeRecord,
  { plain }: SimulatedProvider,
): void {
  const { id, status, providerVolumeId } = after;
  const truth = plain.volumes.find((volume) => volume.id === providerVolumeId);
  const words = [id, ...(providerVolumeId === null ? [] : [providerVolumeId])];
  const isNew = after.startedAt !== null && (before?.startedAt ?? null) === null;
  hold('I21', !isNew || truth?.status !== 'CREATING', () => `${id} is charged before it was made`, words);
  hold(
    'I3',
    status !== 'deleted' || truth === undefined,
    () => `${id} is deleted, and ${truth?.id} is ${truth?.status} at its provider`,
    words,
  );
}
