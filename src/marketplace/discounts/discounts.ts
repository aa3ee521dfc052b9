import type { Deps } from '../deps.ts';
import { newId } from '../model/names.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { DiscountRecord } from '../model/people.ts';

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
      throw new OperatorError(`There is no team "${teamId}": see \`berth marketplace teams ls\`.`);
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
  startsAt?: number | undefined;
  endsAt?: number | null | undefined;
}

/**
 * Ends an assigned discount now; one that has not started never will. Ending it twice keeps the first time.
 *
 * @throws {OperatorError}
 */
export async function endDiscount(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  id: string,
): Promise<DiscountRecord> {
  return store.transact(async (tx) => {
    const record = await tx.discounts.byId(id);
    if (record === null)
      throw new OperatorError(`There is no discount "${id}": see \`berth marketplace discounts ls\`.`);
    if (record.source === 'volume')
      throw new OperatorError(`The discount "${id}" follows from what the team spends; it cannot be ended.`);
    // Locks the team: what it was billed until then has the discount.
    await tx.teams.byId(record.teamId);
    const now = clock.now();
    if (record.endsAt !== null && record.endsAt <= now) return record;
    const ended = { ...record, endsAt: Math.max(now, record.startsAt) };
    await tx.discounts.update(ended);
    return ended;
  });
}
