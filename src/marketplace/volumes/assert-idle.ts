import { ApiError } from '../contract/errors.ts';
import type { MarketplaceOptions } from '../options.ts';
import type { VolumeAction, VolumeRecord } from '../records/volume-record.ts';

const inWords: Readonly<Record<VolumeAction['kind'], string>> = {
  create: 'The volume is being created.',
  attach: 'The volume is being attached.',
  detach: 'The volume is being detached.',
  resize: 'The volume is being resized.',
  delete: 'The volume is being deleted.',
};

/** What only the provider ends: a larger size may cost its price already, and what is deleted may be gone already. */
export function isExclusive({ action }: Pick<VolumeRecord, 'action'>): boolean {
  return action?.kind === 'resize' || action?.kind === 'delete';
}

/** Whether a change was waited for as long as any is. */
export function isGivenUp({ since }: VolumeAction, now: number, { polling }: MarketplaceOptions): boolean {
  return now - since >= polling.actionMs;
}

/**
 * One change of a volume at a time. One that is given up after `actionMs` holds nobody back, unless it is exclusive.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertIdle(record: VolumeRecord, now: number, options: MarketplaceOptions): void {
  const { action } = record;
  if (action === null || (!isExclusive(record) && isGivenUp(action, now, options))) return;
  throw new ApiError('CHANGE_IN_PROGRESS', `${inWords[action.kind]} Wait a moment and try again.`, {
    details: { action: action.kind },
  });
}

/**
 * What the provider has not made yet cannot be attached or detached, however long that takes: it would not be made.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertMade({ status }: Pick<VolumeRecord, 'status'>): void {
  if (status === 'creating')
    throw new ApiError('CHANGE_IN_PROGRESS', `${inWords.create} Wait a moment and try again.`);
}
