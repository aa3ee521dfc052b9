import type { InstanceRecord } from '../../src/orchestrator/model/records.ts';
import type { World } from './world.ts';

const LIVE = new Set(['ONLINE', 'STOPPING', 'STOPPED']);

/** Instances whose machine the platform truly lost, or whose machine broke down. */
function lost({ inspector, machines }: World): InstanceRecord[] {
  return inspector.history
    .instances()
    .filter(({ status, endpoint }) => LIVE.has(status) || (status === 'PROVISIONING' && endpoint !== null))
    .filter(({ ownerRef }) => !machines.of(ownerRef).some(({ power }) => power !== 'failed'));
}

/**
 * The operator compares the instances with the platform, and accepts the losses if machines are really lost: only then may
 * the servers end their instances.
 */
export async function acceptRealLosses(world: World): Promise<void> {
  if (world.isLossAccepted || world.callFaults.isRevoked || lost(world).length === 0) return;
  await world.acceptLosses();
}
