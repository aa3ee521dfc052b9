import { berthExtrasSchema } from '../../contract/extensions.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { profileStoppedPrice, stoppedPrice } from '../providers/capabilities.ts';
import { type Markups, markedUpStopped, noMarkups } from '../providers/markup.ts';
import type { Providers } from '../providers/provider.ts';

/**
 * What the deployment costs while it is stopped, with the markup and before discounts, in micro-USD per hour. Of an
 * offer that is known: what the provider announces, else what its profile says, to which no markup is added. Else
 * what it was at the last stop, what the offer said when it was deployed, or what the profile says. Null: it was
 * never known.
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

/** What its provider asks for it while it is stopped, in micro-USD per hour; null: it does not say now. */
export function providerStoppedRate(
  providers: Providers,
  { providerId, offerId }: Pick<DeploymentRecord, 'providerId' | 'offerId'>,
): number | null {
  return providers.get(providerId)?.catalog.offers.get(offerId)?.providerStoppedPriceMicroUsdPerHour ?? null;
}

function deployedRate(extras: Record<string, unknown>, offerId: string, markups: Markups): number | null {
  const reported = berthExtrasSchema.safeParse(extras['berth']).data?.stopped_price_per_hour;
  return reported === undefined ? null : markedUpStopped(microUsdFromUsd(reported), markups, offerId);
}
