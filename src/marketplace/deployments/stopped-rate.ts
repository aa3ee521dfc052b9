import { berthExtrasSchema } from '../../contract/extensions.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { Providers } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';

/**
 * What the deployment costs while it is stopped, before discounts, in micro-USD per hour: what its provider asks now,
 * else what it asked at the last stop, else what its offer said when it was deployed. Null: nobody ever told.
 */
export function originalStoppedRate(
  providers: Providers,
  record: Pick<DeploymentRecord, 'providerId' | 'offerId' | 'originalStoppedRateMicroUsd' | 'extras'>,
): number | null {
  const offer = providers.get(record.providerId)?.catalog.offers.get(record.offerId);
  return (
    offer?.stoppedPriceMicroUsdPerHour ?? record.originalStoppedRateMicroUsd ?? deployedRate(record.extras)
  );
}

function deployedRate(extras: Record<string, unknown>): number | null {
  const told = berthExtrasSchema.safeParse(extras['berth']).data?.stopped_price_per_hour;
  return told === undefined ? null : microUsdFromUsd(told);
}
