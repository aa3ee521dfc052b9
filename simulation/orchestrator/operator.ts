import { idOf } from '../../src/orchestrator/model/attempt.ts';
import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import { decideOrphan } from '../../src/orchestrator/operate/actions/orphans.ts';
import { virtualClock } from '../kernel/virtual-clock.ts';
import type { World } from './world.ts';

const LIVE = new Set(['ONLINE', 'STOPPING', 'STOPPED']);

/**
 * Instances whose machine the platform truly lost, or whose machine broke down; also those without one of which a host would have
 * to tell that has another name now.
 */
function lost({ inspector, machines, troubled: { hosts } }: World): InstanceRecord[] {
  const names = hosts?.all.map(({ name }) => name);
  const isUntold = ({ status, host }: InstanceRecord): boolean =>
    status !== 'DESTROYED' && host !== null && names?.includes(host) === false;
  return inspector.history
    .instances()
    .filter(
      (row) =>
        LIVE.has(row.status) || (row.status === 'PROVISIONING' && row.endpoint !== null) || isUntold(row),
    )
    .filter(({ ownerRef }) => !machines.of(ownerRef).some(({ power }) => power !== 'failed'));
}

/**
 * The operator compares the instances with the platform, and accepts the losses if machines are really lost: only then may
 * the servers end their instances.
 */
export async function acceptRealLosses(world: World): Promise<void> {
  const areHostsThere = world.troubled.hosts?.all.every(({ state }) => state === 'answers') ?? true;
  if (!areHostsThere || world.isLossAccepted || world.callFaults.isRevoked) return;
  if (lost(world).length === 0) return;
  await world.acceptLosses();
}

/**
 * A call that hung longer than tombstones are kept makes a machine whose end no row tells of any more. The operator
 * knows that, and has it removed.
 */
export async function removeLateMachines({ database, scheduler, inspector, journal }: World): Promise<void> {
  const deps = { store: database.store, clock: virtualClock(scheduler) };
  const actor = { name: 'operator', source: 'cli', address: null } as const;
  for (const { kind, subject: ref } of await database.store.read.alarms.list()) {
    if (kind !== 'row_lost' || !inspector.isPruned(idOf(ref))) continue;
    journal.note('operator', `removes ${ref}`);
    database.writer = null;
    await decideOrphan(deps, actor, { ref, action: 'destroy', isDone: true });
    database.workWritten();
  }
}
