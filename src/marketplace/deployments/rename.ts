import type { Caller } from '../caller.ts';
import type { Deployment, RenameDeployment } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { ownDeployment } from './access.ts';
import { showDeployment } from './to-deployment.ts';

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
