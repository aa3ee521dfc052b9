import { ProviderError } from '../../client/orchestrator-client.ts';

/**
 * What a user is told of a change that has not shown yet (M: 504, "Poll the deployment"): no more than is known.
 * `problem`: what came in place of an answer to the request; null: the provider accepted it.
 */
export function describeSlow(
  { providerId, what, thing }: { providerId: string; what: string; thing: 'deployment' | 'volume' },
  problem: unknown,
): string {
  const advice = `poll the ${thing} rather than trying again.`;
  if (problem === null)
    return `${providerId} has accepted the ${what} and has not finished it yet; ${advice}`;
  const status = problem instanceof ProviderError ? problem.status : null;
  const answer = status === null ? `did not answer the ${what}` : `answered ${status} to the ${what}`;
  return `${providerId} ${answer}, so it may or may not happen; ${advice}`;
}
