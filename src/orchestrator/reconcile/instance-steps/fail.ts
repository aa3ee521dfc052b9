import type { InstanceRecord } from '../../instances/instance-record.ts';
import { transition } from '../../instances/transition.ts';
import type { Transaction } from '../../ports/store.ts';
import type { ReconcileContext } from '../context.ts';
import type { Next } from '../settle.ts';

/**
 * Ends an instance in ERROR with a text for its user, and has what is left of it on the platform removed: an
 * instance that nobody deletes leaks no machine and holds no capacity. Datacenter codes never reach the text.
 */
export async function failInstance(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  error: string,
): Promise<Next> {
  const text = withoutDatacenters(context, error);
  await transition(tx, record, 'ERROR', context.clock.now(), { error: text, attachCycle: false });
  context.log.warn({ instance: record.id, from: record.status, error: text }, 'instance failed');
  return { step: 'destroy' };
}

/** O: conventions, 5: internal datacenter codes never appear in responses. */
function withoutDatacenters({ catalog }: ReconcileContext, text: string): string {
  return [...catalog.regions.values()].reduce(
    (clean, { datacenter, token }) => clean.replaceAll(datacenter, token),
    text,
  );
}
