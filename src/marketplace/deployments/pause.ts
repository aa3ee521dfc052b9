import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Deployment, StopQuote } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import { type Price, priceFor } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { pauseUnsupportedReason } from '../providers/capabilities.ts';
import { type Providers, requireProvider } from '../providers/provider.ts';
import { ask, assertStatus, assertSupported, awaitDeployment, type LifecycleDeps } from './intents.ts';
import { originalStoppedRate } from './stopped-rate.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../pause: "GPU released, disk kept, billing at `stoppedHourlyRate`".
 * @throws {ApiError} PROVIDER_SLOW: it may have succeeded, and a poll will show it; any other: nothing changed
 */
export async function pauseDeployment(deps: LifecycleDeps, caller: Caller, id: string): Promise<Deployment> {
  const asked = await ask(deps, caller, id, 'pause', (record) => assertCanPause(deps.providers, record));
  return showDeployment(deps, await awaitDeployment(deps, asked, ({ status }) => status === 'stopped'));
}

/** @throws {ApiError} ACTION_UNSUPPORTED, INVALID_STATUS, or PROVIDER_REFUSED if the stopped rate is unknown */
export function assertCanPause(providers: Providers, record: DeploymentRecord): void {
  assertSupported(pauseUnsupportedReason(requireProvider(providers, record), record));
  assertStatus(record, 'running', 'stopped');
  stoppedPriceOf(providers, record);
}

/** M: GET .../pause-quote: the cost while stopped. @throws {ApiError} as {@link assertCanPause} */
export async function quotePause(
  { store, clock, providers }: LifecycleDeps,
  caller: Caller,
  id: string,
): Promise<StopQuote> {
  const record = await ownDeployment(store.read, caller, id);
  assertCanPause(providers, record);
  const price = await priceFor(store.read, record.teamId, stoppedPriceOf(providers, record), clock.now());
  return {
    hourlyRate: usdFromMicroUsd(price.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(price.originalRateMicroUsd),
    currentHourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    breakdown: toBreakdown(record, price),
  };
}

/** The stopped rate in micro-USD per hour, before discounts. @throws {ApiError} PROVIDER_REFUSED if it is unknown */
function stoppedPriceOf(providers: Providers, record: DeploymentRecord): number {
  const price = originalStoppedRate(providers, record);
  if (price !== null) return price;
  throw new ApiError(
    'PROVIDER_REFUSED',
    `${record.providerId} does not announce the price of the stopped instance now; nothing changed.`,
  );
}

/** The parts of the stopped rate. They add up to the rate. */
function toBreakdown(
  { storageGb }: DeploymentRecord,
  { originalRateMicroUsd, rateMicroUsd, discountPercentage }: Price,
): StopQuote['breakdown'] {
  const disk = { label: `Disk of ${storageGb} GB, kept`, amount: usdFromMicroUsd(originalRateMicroUsd) };
  if (discountPercentage === 0) return [disk];
  const amount = usdFromMicroUsd(rateMicroUsd - originalRateMicroUsd);
  return [disk, { label: `Discount of ${discountPercentage} %`, amount }];
}
