import type { Caller } from '../caller.ts';
import {
  activeStatuses,
  type Deployment,
  type DeploymentFilter,
  type DeploymentStatus,
  deploymentFilters,
  inactiveStatuses,
} from '../contract/deployment.ts';
import { invalid } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type OwnershipFilter, toOwners } from '../teams/ownership-filter.ts';
import { toDeployment } from './to-deployment.ts';

export interface DeploymentListFilter extends OwnershipFilter {
  /** One of `deploymentFilters`. */
  status?: string | undefined;
}

/**
 * M: GET /api/deployments: the newest first; without a filter all of the caller's teams.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND
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

function toStatuses(text: string): readonly DeploymentStatus[] {
  const filter = deploymentFilters.find((name) => name === text);
  if (filter === undefined) throw invalid('status', `expected one of ${deploymentFilters.join(', ')}`);
  return statusesOf(filter);
}

function statusesOf(filter: DeploymentFilter): readonly DeploymentStatus[] {
  if (filter === 'active') return activeStatuses;
  if (filter === 'inactive') return inactiveStatuses;
  return [filter];
}
