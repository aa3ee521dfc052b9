import type { Deps } from '../deps.ts';
import { newId } from '../model/names.ts';
import { OperatorError } from '../model/own-rows.ts';
import type { DiscountRecord } from '../model/people.ts';

/** Limits of a discount in percent (M: Offer: "5 to 50 percent"). */
const LOWEST = 5;
const HIGHEST = 50;

/** Assigns a discount from `startsAt`, by default now. Earlier usage keeps its price. @throws {OperatorError} */
export async function assignDiscount(
  { store, clock, random }: Pick<Deps, 'store' | 'clock' | 'random'>,
  { teamId, percentage, startsAt, endsAt = null }: AssignedDiscount,
): Promise<DiscountRecord> {
  if (!Number.isInteger(percentage) || percentage < LOWEST || percentage > HIGHEST)
    throw new OperatorError(`A discount must be a whole number from ${LOWEST} to ${HIGHEST} per cent.`);
  return store.transact(async (tx) => {
    const now = clock.now();
    const from = startsAt ?? now;
    if (from < now) throw new OperatorError('A discount must start now or later.');
    if (endsAt !== null && endsAt <= from) throw new OperatorError('A discount must end after its start.');
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

/** Ends a discount, also one that has not started. Ending it again keeps the first end. @throws {OperatorError} */
export async function endDiscount(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  id: string,
): Promise<DiscountRecord> {
  return store.transact(async (tx) => {
    const record = await tx.discounts.byId(id);
    if (record === null)
      throw new OperatorError(
        `There is no discount "${id}": see \`berth marketplace discounts ls\`.`,
        'not_found',
      );
    if (record.source === 'volume')
      throw new OperatorError(`The discount "${id}" depends on the spend of the team; it cannot be ended.`);
    // Locks the team, so that everything billed until now has the discount.
    await tx.teams.byId(record.teamId);
    const now = clock.now();
    if (record.endsAt !== null && record.endsAt <= now) return record;
    const ended = { ...record, endsAt: Math.max(now, record.startsAt) };
    await tx.discounts.update(ended);
    return ended;
  });
}
