import { transition } from '../../instances/transition.ts';
import { type InstanceRecord, logNames } from '../../model/instance-record.ts';
import type { Transaction } from '../../model/store.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import type { Next } from '../settle.ts';

/**
 * Ends an instance in ERROR with a text for its user, and has what is left of it on the platform removed: an
 * instance that nobody deletes leaks no machine and holds no capacity. The platform's own names never reach the
 * text, and what cloud_init held is dropped.
 */
export async function failInstance(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  error: string,
): Promise<Next> {
  const text = withoutPlatformNames(context, error);
  const spec = { ...record.spec, cloudInit: undefined };
  await transition(tx, record, 'ERROR', context.clock.now(), { error: text, attachCycle: false, spec });
  context.log.warn({ ...logNames(record), from: record.status, reason: error }, 'instance failed');
  return { step: 'destroy' };
}

/** An owner ref, which may be another account's. */
const OWNER_REF = /berth-(?:inst|vol)-[0-9a-f]+/gi;

/** O: conventions, 5: internal datacenter codes never appear in responses. */
function withoutPlatformNames({ catalog }: ReconcileContext, text: string): string {
  const tokens = new Map(
    [...catalog.regions.values()].map(({ datacenter, token }) => [datacenter.toLowerCase(), token]),
  );
  // The longest first: one code may begin with another.
  const codes = [...tokens.keys()]
    .sort((a, b) => b.length - a.length)
    .map((code) => code.replace(/[^a-z0-9_-]/g, '\\$&'));
  return text
    .replace(OWNER_REF, 'a machine')
    .replace(new RegExp(codes.join('|') || '(?!)', 'gi'), (code) => tokens.get(code.toLowerCase()) ?? code);
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** How long the instance had to come ONLINE, in words. */
export function describeWindow({ spec: { onlineWithinMs } }: InstanceRecord): string {
  return onlineWithinMs < 2 * MINUTE_MS
    ? `${Math.round(onlineWithinMs / SECOND_MS)} seconds`
    : `${Math.round(onlineWithinMs / MINUTE_MS)} minutes`;
}
