import type { DeploymentStatus } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';

/**
 * M: Deployments, rule 1: "Stop works only on a running instance; start only on a stopped one; restart only on a running
 * one".
 *
 * @throws {ApiError} INVALID_STATUS
 */
export function assertStatus(
  { status }: DeploymentRecord,
  needed: DeploymentStatus,
  verb: 'stopped' | 'started' | 'restarted',
): void {
  if (status === needed) return;
  throw new ApiError('INVALID_STATUS', `Only a ${needed} deployment can be ${verb}; this one is ${status}.`, {
    details: { status },
  });
}
