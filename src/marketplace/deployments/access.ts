import type { Caller } from '../caller.ts';
import { forbidden, notFound } from '../contract/errors.ts';
import type { Reader } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';

/**
 * The deployment, if it is of a team of the caller; locked where `read` is a transaction.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function ownDeployment(
  read: Pick<Reader, 'deployments' | 'teams'>,
  { userId }: Caller,
  id: string,
): Promise<DeploymentRecord> {
  const record = await read.deployments.byId(id);
  if (record === null) throw notFound('deployment');
  if ((await read.teams.member(record.teamId, userId)) === null) throw forbidden('deployment');
  return record;
}
