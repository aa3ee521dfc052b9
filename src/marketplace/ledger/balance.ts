import { usdFromMicroUsd } from '../../contract/values.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';
import { accrued } from './accrued.ts';

type BalanceReader = Pick<Reader, 'teams' | 'ledger' | 'discounts'>;

/** The stored balance less what has been used since, in micro-USD. @throws {ApiError} NOT_FOUND */
export async function realTimeBalance(read: BalanceReader, teamId: string, now: number): Promise<number> {
  const team = await read.teams.byId(teamId);
  if (team === null) throw notFound('team');
  return team.balanceMicroUsd - (await accrued(read, teamId, now));
}

/**
 * A team without balance begins nothing new.
 *
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: insufficient_balance`
 */
export async function assertCanSpend(read: BalanceReader, teamId: string, now: number): Promise<void> {
  const balance = await realTimeBalance(read, teamId, now);
  if (balance > 0) return;
  throw new ApiError('VALIDATION_ERROR', 'The balance of the team is used up; top it up first.', {
    details: { reason: 'insufficient_balance', balance: usdFromMicroUsd(balance) },
  });
}
