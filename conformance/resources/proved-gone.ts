import type { Exchange } from '../transcript/records.ts';
import { idOf, listOf, statusOf, successOf, textField } from '../wire/json.ts';

/**
 * Whether a read of an instance, and a list that was asked for after it, prove it to be gone. A 404 beside a list that
 * cannot be read, or that shows it alive, proves nothing. Only where the list is longer than the suite reads, which is
 * no fault of the target's, the read has to do.
 */
export function isProvedGone(id: string, read: Exchange, list: Exchange): boolean {
  const isGone = statusOf(read) === 404 || textField(successOf(read), 'status') === 'DESTROYED';
  if (list.failure?.kind === 'too_large') return isGone;
  const instances = listOf(list);
  if (!isGone || instances === undefined) return false;
  return !instances.some((instance) => idOf(instance) === id && instance['status'] !== 'DESTROYED');
}
