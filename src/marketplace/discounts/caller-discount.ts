import type { Caller } from '../caller.ts';
import type { Deps } from '../deps.ts';
import { currentTeam } from '../teams/access.ts';
import { bestDiscount } from './best-discount.ts';

/** What the caller's current team has off now, in percent; null: nobody is logged in (M: Offer). */
export async function callerDiscount(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  caller: Caller | undefined,
): Promise<number | null> {
  if (caller === undefined) return null;
  const teamId = await currentTeam(store.read, caller);
  return teamId === null ? 0 : bestDiscount(await store.read.discounts.ofTeam(teamId), clock.now());
}
