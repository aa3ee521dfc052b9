import { usdFromMicroUsd } from '../../contract/values.ts';
import { invalid } from '../contract/errors.ts';
import type { VolumePricing } from '../contract/volume.ts';
import type { Providers } from '../providers/provider.ts';
import { ratePerGb } from './hourly-rate.ts';
import { findPlace } from './places.ts';
import { volumeSeller } from './seller.ts';

/**
 * M: GET /api/volumes/pricing: before discounts. Without a region the provider's own price.
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function readVolumePricing(
  { providers }: { providers: Providers },
  query: { provider?: string | undefined; region?: string | undefined; cloudId?: string | undefined },
): VolumePricing {
  const { provider, region, cloudId } = query;
  if (provider === undefined) throw invalid('provider', 'required');
  const seller = volumeSeller(providers, provider);
  if (cloudId !== undefined && region === undefined) throw invalid('region', 'required with cloudId');
  const isNamed = region !== undefined && (cloudId !== undefined || !seller.profile.cloud_id);
  if (isNamed) findPlace(seller, { region, cloudId });
  const rate = ratePerGb(seller.profile, { region: region ?? '', cloudId });
  return { provider, hourlyRatePerGb: usdFromMicroUsd(rate) };
}
