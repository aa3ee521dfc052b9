import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import { OperatorError } from '../operator-error.ts';
import type { DiscountRecord } from '../records/people.ts';

/** M: Offer: "5 to 50 percent". */
const LOWEST = 5;
const HIGHEST = 50;

/**
 * Gives a team a discount from `startsAt`, which is now where it is left out, until `endsAt` or until it is ended. What
 * was used before is not priced anew.
 *
 * @throws {OperatorError}
 */
export async function assignDiscount(
  { store, clock, random }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { teamId, percentage, startsAt, endsAt = null }: AssignedDiscount,
): Promise<DiscountRecord> {
  if (!Number.isInteger(percentage) || percentage < LOWEST || percentage > HIGHEST)
    throw new OperatorError(`A discount is a whole number of ${LOWEST} to ${HIGHEST} per cent.`);
  return store.transact(async (tx) => {
    const now = clock.now();
    const from = startsAt ?? now;
    if (from < now) throw new OperatorError('A discount starts now or later.');
    if (endsAt !== null && endsAt <= from) throw new OperatorError('A discount ends after it has started.');
    if ((await tx.teams.byId(teamId)) === null)
      throw new OperatorError(`There is no team "${teamId}": see \`berth marketplace teams list\`.`);
    const record: DiscountRecord = {
      id: newId(random, 'disc'),
      teamId,
      source: 'admin',
      percentage,
      startsAt: from,
      endsAt,
    };
    await tx.discounts.insert(record);
    return record;
  });
}

export interface AssignedDiscount {
  teamId: string;
  /** Whole percents. */
  percentage: number;
  startsAt?: number;
  endsAt?: number | null;
}
