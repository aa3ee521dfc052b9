import { ApiError } from '../contract/errors.ts';
import type { Action, DeploymentRecord } from './deployment-record.ts';
import type { MarketplaceOptions } from './options.ts';

const inWords: Readonly<Record<Action['kind'], string>> = {
  pause: 'It is being stopped.',
  resume: 'It is being started.',
  restart: 'It is being restarted.',
  volume: 'A volume of it is being changed.',
};

/**
 * One change at a time (M: 409, "Another change (volume change, earlier restart) is in flight").
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertNoAction({ action }: DeploymentRecord, now: number, options: MarketplaceOptions): void {
  if (action === null || now - action.since >= options.polling.actionMs) return;
  throw new ApiError('CHANGE_IN_PROGRESS', `${inWords[action.kind]} Wait a few minutes and try again.`, {
    details: { action: action.kind },
  });
}
