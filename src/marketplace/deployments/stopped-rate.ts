import { berthAnswerSchema } from '../../client/answers.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { profileStoppedPrice, stoppedPrice } from '../providers/capabilities.ts';
import { type Markups, markedUpStopped, noMarkups } from '../providers/markup.ts';
import type { Providers } from '../providers/provider.ts';

/**
 * The stopped rate with the markup and before discounts, in micro-USD per hour: the announced one, else the profile's,
 * else the last known. Null if none was ever known.
 */
export function originalStoppedRate(providers: Providers, record: DeploymentRecord): number | null {
  const { offerId, region, extras, originalStoppedRateMicroUsd: last } = record;
  const provider = providers.get(record.providerId);
  const offer = provider?.catalog.offers.get(offerId);
  const known = provider && offer ? stoppedPrice(provider.profile, offer, region) : null;
  return (
    known ??
    last ??
    deployedRate(extras, offerId, provider?.markups ?? noMarkups) ??
    (provider === undefined ? null : profileStoppedPrice(provider.profile, record, region))
  );
}

/** The provider's price while stopped, in micro-USD per hour. Null if the current catalog has none. */
export function providerStoppedRate(
  providers: Providers,
  { providerId, offerId }: Pick<DeploymentRecord, 'providerId' | 'offerId'>,
): number | null {
  return providers.get(providerId)?.catalog.offers.get(offerId)?.providerStoppedPriceMicroUsdPerHour ?? null;
}

function deployedRate(extras: Record<string, unknown>, offerId: string, markups: Markups): number | null {
  const reported = berthAnswerSchema.safeParse(extras['berth']).data?.stopped_price_per_hour;
  return reported === undefined ? null : markedUpStopped(microUsdFromUsd(reported), markups, offerId);
}
