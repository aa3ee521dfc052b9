import {
  activeStatuses,
  type Deployment,
  type DeploymentFilter,
  type DeploymentStatus,
  inactiveStatuses,
  type RenameDeployment,
} from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { PageEnd } from '../model/ledger-records.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { type OwnershipFilter, toOwners } from '../teams/access.ts';
import { type ShowDeps, showDeployment, showDeployments } from './to-deployment.ts';

/** M: GET /api/deployments/{deploymentId}. @throws {ApiError} NOT_FOUND or FORBIDDEN */
export async function readDeployment(deps: ShowDeps, caller: Caller, id: string): Promise<Deployment> {
  return showDeployment(deps, await ownDeployment(deps.store.read, caller, id, 'read'));
}

export interface DeploymentListFilter extends OwnershipFilter {
  status?: DeploymentFilter | undefined;
  /** Absent: all of them on one page. */
  limit?: number | undefined;
  /** Starts at 1. */
  page?: number | undefined;
}

/** A part of a list as JSON. `isAll` marks the last part. */
interface DeploymentPage {
  items: readonly string[];
  isAll: boolean;
}

/** How many rows one read returns; fewer where rows are large. */
const PAGE_ROWS = 100;
const PAGE_BYTES = 128 * 1024;

/**
 * M: GET /api/deployments: the newest first. Yields the list in parts, since M: does not limit the length of names.
 * Without a `limit` it yields all deployments. A page after the last is empty.
 * @throws {ApiError} FORBIDDEN or NOT_FOUND
 */
export async function* pagesOfDeployments(
  deps: ShowDeps,
  caller: Caller,
  { status, limit: most = Number.POSITIVE_INFINITY, page = 1, ...filter }: DeploymentListFilter,
): AsyncGenerator<DeploymentPage, void> {
  const { read } = deps.store;
  const statuses = status === undefined ? undefined : toStatuses(status);
  const owners = { ...(await toOwners(read, caller, filter)), ...(statuses && { statuses }) };
  let after: PageEnd | undefined;
  let left = page > 1 && !Number.isFinite(most) ? 0 : most;
  if (page > 1 && left > 0) {
    const offset = (page - 1) * most - 1;
    const [before] = await read.deployments.list({ ...owners, limit: 1, offset });
    if (before === undefined) left = 0;
    else after = { at: before.createdAt, id: before.id };
  }
  let atOnce = PAGE_ROWS;
  while (left > 0) {
    const limit = Math.min(atOnce, left);
    const records = await read.deployments.list({ ...owners, limit, after });
    const shown = await showDeployments(deps, records);
    const items = shown.map((one) => JSON.stringify(one));
    const bytes = items.reduce((sum, item) => sum + item.length, 0);
    const isAll = records.length < limit || limit === left;
    if (bytes <= 2 * PAGE_BYTES || limit === 1) {
      yield { items, isAll };
      left -= records.length;
      const last = records.at(-1);
      if (isAll || last === undefined) return;
      after = { at: last.createdAt, id: last.id };
    }
    // Parts have a limited size, so that a slow client holds little memory. A part that is too large is read again.
    const fitting = Math.floor(PAGE_BYTES / Math.max(1, bytes / Math.max(1, records.length)));
    atOnce = Math.min(PAGE_ROWS, Math.max(1, fitting));
  }
}

function toStatuses(filter: DeploymentFilter): readonly DeploymentStatus[] {
  if (filter === 'active') return activeStatuses;
  if (filter === 'inactive') return inactiveStatuses;
  return [filter];
}

/**
 * M: PATCH /api/deployments/{deploymentId}: "Rename changes only `name`; a body without `name` is rejected (404, text
 * `Nothing to update`); other body fields are ignored" (M: Deployments, rule 5).
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function renameDeployment(
  deps: ShowDeps,
  caller: Caller,
  id: string,
  { name }: RenameDeployment,
): Promise<Deployment> {
  const renamed = await deps.store.transact(async (tx) => {
    const record = await ownDeployment(tx, caller, id, 'change');
    if (name === undefined) throw new ApiError('NOT_FOUND', 'Nothing to update');
    const renamed = { ...record, name };
    await tx.deployments.update(renamed);
    return renamed;
  });
  return showDeployment(deps, renamed);
}
