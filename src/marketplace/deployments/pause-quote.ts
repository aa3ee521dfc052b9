import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Caller } from '../caller.ts';
import type { StopQuote } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Price, priceFor } from '../discounts/price-for.ts';
import { pauseUnsupportedReason } from '../providers/capabilities.ts';
import type { Provider, Providers } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { ownDeployment } from './access.ts';
import { assertStatus } from './assert-status.ts';
import { providerOf } from './provider-of.ts';
import { originalStoppedRate } from './stopped-rate.ts';

/**
 * M: GET .../pause-quote: what it would cost while stopped, by what the provider told last. Changes nothing.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, ACTION_UNSUPPORTED, INVALID_STATUS, or PROVIDER_REFUSED where the stopped rate
 *   is undeterminable
 */
export async function quotePause(
  { store, clock, providers }: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  id: string,
): Promise<StopQuote> {
  const record = await ownDeployment(store.read, caller, id);
  const provider = providerOf(providers, record);
  assertSupportsPause(provider, record);
  assertStatus(record, 'running', 'stopped');
  const price = await priceFor(store.read, record.teamId, stoppedPriceOf(providers, record), clock.now());
  return {
    hourlyRate: usdFromMicroUsd(price.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(price.originalRateMicroUsd),
    currentHourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    breakdown: toBreakdown(record, price),
  };
}

/** @throws {ApiError} ACTION_UNSUPPORTED, which names the limit */
export function assertSupportsPause(provider: Provider, record: DeploymentRecord): void {
  const reason = pauseUnsupportedReason(provider, record);
  if (reason !== null) throw new ApiError('ACTION_UNSUPPORTED', reason);
}

/** Before discounts, in micro-USD per hour. @throws {ApiError} PROVIDER_REFUSED where it is undeterminable */
export function stoppedPriceOf(providers: Providers, record: DeploymentRecord): number {
  const price = originalStoppedRate(providers, record);
  if (price !== null) return price;
  throw new ApiError(
    'PROVIDER_REFUSED',
    `${record.providerId} does not tell now what the instance costs while it is stopped; nothing changed.`,
  );
}

/** The amounts add up to the rate, in micro-USD. */
function toBreakdown(
  { storageGb }: DeploymentRecord,
  { originalRateMicroUsd, rateMicroUsd, discountPercentage }: Price,
): StopQuote['breakdown'] {
  const disk = { label: `Disk of ${storageGb} GB, kept`, amount: usdFromMicroUsd(originalRateMicroUsd) };
  if (discountPercentage === 0) return [disk];
  const amount = usdFromMicroUsd(rateMicroUsd - originalRateMicroUsd);
  return [disk, { label: `Discount of ${discountPercentage} %`, amount }];
}
