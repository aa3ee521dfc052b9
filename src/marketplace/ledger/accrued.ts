import type { Reader } from '../ports/store.ts';
import { unpostedOf } from './price-change.ts';

/**
 * What a team's open segments have cost by `at` and was not taken from its balance yet. As with slices, a deployment costs
 * nothing beyond what its provider has confirmed: one that is silent for hours takes nobody's balance to zero.
 */
export async function accrued(
  read: Pick<Reader, 'ledger' | 'discounts'>,
  teamId: string,
  at: number,
): Promise<number> {
  const segments = await read.ledger.openSegmentsOfTeam(teamId);
  if (segments.length === 0) return 0;
  const discounts = await read.discounts.ofTeam(teamId);
  return segments.reduce((sum, { segment, confirmedUntil }) => {
    const until = Math.min(at, confirmedUntil ?? at);
    return sum + (until > segment.postedUntil ? unpostedOf(segment, discounts, until) : 0);
  }, 0);
}
