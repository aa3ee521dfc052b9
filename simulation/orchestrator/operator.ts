import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import { decideOrphan } from '../../src/orchestrator/operate/actions/orphans.ts';
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
 * A call that hung longer than tombstones are kept makes a machine of whose DELETE no row tells any more. The operator
 * knows of it, and has the machine removed.
 */
export async function removeLateMachines(world: World): Promise<void> {
  const { database, scheduler, inspector, journal, machines } = world;
  const deps = { store: database.store, clock: scheduler.clock };
  const actor = { name: 'operator', source: 'cli', address: null } as const;
  const isLate = (ref: string): boolean => {
    const row = inspector.history.byRef(ref);
    if (row === undefined || row.destroyOrder === null || !inspector.isPruned(row.id)) return false;
    if (inspector.history.versions(row.id).some(({ record }) => record.status === 'OFFLINE')) return false;
    const endedAt = inspector.history.end(row.id) ?? Number.POSITIVE_INFINITY;
    return machines.of(row.ownerRef).every(({ createdAt }) => createdAt > endedAt);
  };
  for (const { kind, subject: ref } of await database.store.read.alarms.list()) {
    if (kind !== 'row_lost' || !isLate(ref)) continue;
    journal.note('operator', `removes ${ref}`);
    database.writer = null;
    await decideOrphan.perform(deps, actor, { ref, action: 'destroy', dry_run: false });
    database.workWritten();
  }
}
