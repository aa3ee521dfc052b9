import {
  activeStatuses,
  type Deployment,
  type DeploymentFilter,
  type DeploymentStatus,
  inactiveStatuses,
  type RenameDeployment,
} from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { type OwnershipFilter, toOwners } from '../teams/access.ts';
import { showDeployment, showDeployments } from './to-deployment.ts';

/**
 * M: GET /api/deployments/{deploymentId}
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function readDeployment(
  { store, clock, providers }: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  id: string,
): Promise<Deployment> {
  return showDeployment({ store, clock, providers }, await ownDeployment(store.read, caller, id));
}

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

/**
 * M: PATCH /api/deployments/{deploymentId}: "Rename changes only `name`; a body without `name` is rejected (404, text
 * `Nothing to update`); other body fields are ignored" (M: Deployments, rule 5).
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function renameDeployment(
  { store, clock, providers }: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  id: string,
  { name }: RenameDeployment,
): Promise<Deployment> {
  const renamed = await store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id);
    if (name === undefined) throw new ApiError('NOT_FOUND', 'Nothing to update');
    const renamed = { ...record, name };
    await tx.deployments.update(renamed);
    return renamed;
  });
  return showDeployment({ store, clock, providers }, renamed);
}
