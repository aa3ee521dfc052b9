import type { Caller } from '../caller.ts';
import type { Deployment } from '../contract/deployment.ts';
import type { Deps } from '../deps.ts';
import { ownDeployment } from './access.ts';
import { showDeployment } from './to-deployment.ts';

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
