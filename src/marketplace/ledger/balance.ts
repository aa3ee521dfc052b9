import { notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';
import { accrued } from './accrued.ts';

type BalanceReader = Pick<Reader, 'teams' | 'ledger' | 'discounts'>;

/** The stored balance less what has been used since, in micro-USD. @throws {ApiError} NOT_FOUND */
export async function realTimeBalance(read: BalanceReader, teamId: string, now: number): Promise<number> {
  const team = await read.teams.byId(teamId);
  if (team === null) throw notFound('team');
  return team.balanceMicroUsd - (await accrued(read, teamId, now));
}
