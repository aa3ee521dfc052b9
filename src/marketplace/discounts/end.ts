import type { Deps } from '../deps.ts';
import { OperatorError } from '../operator-error.ts';
import type { DiscountRecord } from '../records/people.ts';

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
      throw new OperatorError(`There is no discount "${id}": see \`berth marketplace discounts list\`.`);
    if (record.source === 'volume')
      throw new OperatorError(`The discount "${id}" follows from what the team spends; it cannot be ended.`);
    const now = clock.now();
    if (record.endsAt !== null && record.endsAt <= now) return record;
    const ended = { ...record, endsAt: Math.max(now, record.startsAt) };
    await tx.discounts.update(ended);
    return ended;
  });
}
