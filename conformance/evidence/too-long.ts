import type { Exchange } from '../transcript/records.ts';
import { notTested, Unproved } from '../verdict/finding.ts';
import { requestOf } from '../verdict/words.ts';
import { asksForList } from '../wire/limits.ts';

/** Whether a list was longer than what the suite reads, which is its own limit and no fault of the target. */
export function isTooLong({ request, failure }: Exchange): boolean {
  return failure?.kind === 'too_large' && asksForList(request);
}

/** Where a list was too long, throws `Unproved`, which says so. */
export function refuseTooLong(exchanges: readonly Exchange[]): void {
  const found = exchanges.find(isTooLong);
  if (found === undefined) return;
  throw new Unproved(
    notTested(`the answer to ${requestOf(found)} is longer than the suite reads: ${found.failure?.message}`),
  );
}
