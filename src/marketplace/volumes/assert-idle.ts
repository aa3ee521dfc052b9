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

/**
 * One change of a volume at a time. One that is given up after `actionMs` holds nobody back; but a larger size, which may
 * cost the provider's price already, is waited for until the provider says what the volume has.
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertIdle({ action }: VolumeRecord, now: number, { polling }: MarketplaceOptions): void {
  if (action === null || (action.kind !== 'resize' && now - action.since >= polling.actionMs)) return;
  throw new ApiError('CHANGE_IN_PROGRESS', `${inWords[action.kind]} Wait a moment and try again.`, {
    details: { action: action.kind },
  });
}
