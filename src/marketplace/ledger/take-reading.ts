import type { Reader } from '../ports/store.ts';
import type { BalanceReading, SegmentRecord } from '../records/ledger-records.ts';
import { realTimeBalance } from './balance.ts';

/** What all open segments together cost, in micro-USD per hour. */
function burnRate(open: readonly { segment: SegmentRecord }[]): number {
  return open.reduce((sum, { segment }) => sum + segment.rateMicroUsdPerHour, 0);
}

/** What a team has now, and how fast it is used. @throws {ApiError} NOT_FOUND */
export async function takeReading(
  read: Pick<Reader, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  at: number,
): Promise<BalanceReading> {
  const balanceMicroUsd = await realTimeBalance(read, teamId, at);
  return {
    at,
    balanceMicroUsd,
    burnMicroUsdPerHour: burnRate(await read.ledger.openSegmentsOfTeam(teamId)),
  };
}
