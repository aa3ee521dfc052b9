import { deployTimeoutMinutes } from '../providers/capabilities.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import type { TendingContext } from './context.ts';
import { fail } from './fail.ts';

const MINUTE_MS = 60_000;

/** Whether the deployment had the time that its provider has, and is not running. */
export function isOverdue(
  { clock, provider, unproved, options }: TendingContext,
  record: DeploymentRecord,
): boolean {
  if (record.status !== 'deploying') return false;
  const { id, createdAt, sshProof } = record;
  const onlineAt = sshProof?.onlineAt ?? unproved.get(id)?.seenAt;
  const madeBy = createdAt + deployTimeoutMinutes(provider, record) * MINUTE_MS;
  // One that was ONLINE has its time to be proved.
  const provedBy = onlineAt === undefined ? madeBy : onlineAt + options.polling.sshWindowMs;
  return clock.now() >= Math.max(madeBy, provedBy);
}

export async function failOverdue(context: TendingContext, record: DeploymentRecord): Promise<void> {
  const minutes = deployTimeoutMinutes(context.provider, record);
  const details = `It was not reachable within ${minutes} minutes, and is removed.`;
  await fail(context, record, 'provisioning_timeout', details);
}
