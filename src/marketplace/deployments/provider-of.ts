import { ApiError } from '../contract/errors.ts';
import type { Provider, Providers } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';

/**
 * Where a deployment is.
 *
 * @throws {ApiError} PROVIDER_REFUSED where the configuration does not have the provider any more
 */
export function providerOf(providers: Providers, { providerId }: DeploymentRecord): Provider {
  const provider = providers.get(providerId);
  if (provider !== undefined) return provider;
  throw new ApiError('PROVIDER_REFUSED', `${providerId} cannot be reached from here; nothing changed.`);
}

/**
 * When a terminate that is accepted at `now` counts from. Where the configuration does not have the provider any more,
 * nobody vouches for what came after the last look at it, and nobody pays for that.
 */
export function endsAt(providers: Providers, record: DeploymentRecord, now: number): number {
  if (providers.get(record.providerId) !== undefined) return now;
  return record.observedAt ?? now;
}
