import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader } from '../model/store.ts';

/**
 * M: Deployments, rule 4: "the longer of the account minimum (default 20 minutes) and `providerMinimumRuntimeMinutes`".
 * The account is that of the user who created the deployment.
 */
export async function minimumRuntimeMinutes(
  { users }: Pick<Reader, 'users'>,
  options: Pick<Deps['options'], 'minimumRuntimeMinutes'>,
  {
    userId,
    providerMinimumRuntimeMinutes,
  }: Pick<DeploymentRecord, 'userId' | 'providerMinimumRuntimeMinutes'>,
): Promise<number> {
  const user = await users.byId(userId);
  return Math.max(
    user?.minimumRuntimeMinutes ?? options.minimumRuntimeMinutes,
    providerMinimumRuntimeMinutes ?? 0,
  );
}
