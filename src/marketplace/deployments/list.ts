import type { Caller } from '../caller.ts';
import {
  activeStatuses,
  type Deployment,
  type DeploymentFilter,
  type DeploymentStatus,
  inactiveStatuses,
} from '../contract/deployment.ts';
import type { Deps } from '../deps.ts';
import { type OwnershipFilter, toOwners } from '../teams/ownership-filter.ts';
import { toDeployment } from './to-deployment.ts';

export interface DeploymentListFilter extends OwnershipFilter {
  status?: DeploymentFilter | undefined;
}

/**
 * M: GET /api/deployments: the newest first; without a filter all of the caller's teams.
 *
 * @throws {ApiError} FORBIDDEN or NOT_FOUND
 */
export async function listDeployments(
  { store, clock, providers }: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  { status, ...filter }: DeploymentListFilter,
): Promise<Deployment[]> {
  const statuses = status === undefined ? undefined : toStatuses(status);
  const owners = await toOwners(store.read, caller, filter);
  const records = await store.read.deployments.list({ ...owners, ...(statuses && { statuses }) });
  const now = clock.now();
  return records.map((record) => toDeployment(record, providers, now));
}

function toStatuses(filter: DeploymentFilter): readonly DeploymentStatus[] {
  if (filter === 'active') return activeStatuses;
  if (filter === 'inactive') return inactiveStatuses;
  return [filter];
}
