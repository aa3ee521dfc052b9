import { ApiError } from '../../contract/errors.ts';
import { audited } from '../../operators/audit.ts';
import type { Actor } from '../../operators/model.ts';
import type { Clock } from '../../ports/clock.ts';
import type { AlarmKind, AlarmRecord } from '../model/alarm.ts';
import type { Store } from '../model/store.ts';

/**
 * Records that an operator is working on an alarm, or on all alarms of a kind. Each ends with its cause.
 *
 * @throws {ApiError} `not_found` if no such alarm is open
 */
export async function acknowledgeAlarms(
  deps: { store: Store; clock: Clock },
  actor: Actor,
  of: { kind: AlarmKind; subject?: string },
): Promise<AlarmRecord[]> {
  const subject = [of.kind, of.subject ?? []].flat().join(' ');
  return audited(deps, actor, { action: 'alarm.acknowledge', subject }, async (store) => {
    const acknowledged = await store.transact((tx) => tx.alarms.acknowledge(of, actor.name));
    if (acknowledged.length === 0) throw new ApiError('not_found', `No alarm ${subject} is open.`);
    return acknowledged;
  });
}
