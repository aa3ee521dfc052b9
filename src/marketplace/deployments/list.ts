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
import { showDeployments } from './to-deployment.ts';

export interface DeploymentListFilter extends OwnershipFilter {
  status?: DeploymentFilter | undefined;
  /** Absent: all of them are one page. */
  limit?: number | undefined;
  /** From 1. */
  page?: number | undefined;
}

/**
 * M: GET /api/deployments: the newest first; without a filter all of the caller's teams. A page beyond the last one is
 * empty; M: names no pages here, so nothing is cut unless a `limit` was sent.
 *
 * @throws {ApiError} FORBIDDEN or NOT_FOUND
 */
export async function listDeployments(
  { store, clock, providers }: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  { status, limit, page = 1, ...filter }: DeploymentListFilter,
): Promise<Deployment[]> {
  const statuses = status === undefined ? undefined : toStatuses(status);
  const owners = await toOwners(store.read, caller, filter);
  if (limit === undefined && page > 1) return [];
  const records = await store.read.deployments.list({
    ...owners,
    ...(statuses && { statuses }),
    ...(limit !== undefined && { page: { limit, offset: (page - 1) * limit } }),
  });
  return showDeployments({ store, clock, providers }, records);
}

function toStatuses(filter: DeploymentFilter): readonly DeploymentStatus[] {
  if (filter === 'active') return activeStatuses;
  if (filter === 'inactive') return inactiveStatuses;
  return [filter];
}
