import { ProviderError } from '../../client/orchestrator-client.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Deployment, StopQuote } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Price, priceFor } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import { pauseUnsupportedReason } from '../providers/capabilities.ts';
import type { Provider, Providers } from '../providers/provider.ts';
import { assertStatus, type BegunDeployment, beginAction } from './actions.ts';
import type { ApplyDeps } from './apply-observation.ts';
import { awaitStatus, getInstance, providerOf, refusal } from './refusal.ts';
import { originalStoppedRate } from './stopped-rate.ts';
import { showDeployment } from './to-deployment.ts';

/**
 * M: POST .../pause: running → stopped, "GPU released, disk kept, billing at `stoppedHourlyRate`". The stop is sent
 * once, and the provider is polled until it shows.
 *
 * @throws {ApiError} NOT_FOUND, FORBIDDEN, ACTION_UNSUPPORTED, INVALID_STATUS, CHANGE_IN_PROGRESS or
 *   PROVIDER_REFUSED: then nothing changed; PROVIDER_SLOW: it went through, or may have, and a poll will show it
 */
export async function pauseDeployment(deps: ApplyDeps, caller: Caller, id: string): Promise<Deployment> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const begun = await beginAction(deps, caller, id, { kind: 'pause', isSent: true }, (record) => {
    const provider = providerOf(providers, record);
    assertSupportsPause(provider, record);
    assertStatus(record, 'running', 'stopped');
    stoppedPriceOf(providers, record);
  });
  const provider = providerOf(providers, begun);
  const { callTimeoutMs: timeoutMs } = options.polling;
  let problem: ProviderError | null = null;
  try {
    await provider.client.stopInstance(begun.providerInstanceId, begun.region, { timeoutMs });
  } catch (error) {
    if (!(await mayBeStopping(provider, begun, error, timeoutMs))) throw await refusal(store, begun, error);
    if (error instanceof ProviderError && error.mayHaveHappened) problem = error;
  }
  const stopped = await awaitStatus(deps, provider, begun, { wanted: 'stopped', deadline, problem });
  return showDeployment({ store, clock, providers }, stopped);
}

/**
 * A stop without an answer "usually means it was accepted" (M: Deployments, rule 3). If the answer was inconclusive,
 * the instance is read.
 */
async function mayBeStopping(
  provider: Provider,
  begun: BegunDeployment,
  error: unknown,
  timeoutMs: number,
): Promise<boolean> {
  if (!(error instanceof ProviderError)) return false;
  const { problem, mayHaveHappened } = error;
  if (mayHaveHappened && problem !== 'failed') return true;
  if (!mayHaveHappened && problem !== 'conflict') return false;
  const instance = await getInstance(provider, begun, timeoutMs);
  if (instance === null) return mayHaveHappened;
  return instance.status === 'STOPPING' || instance.status === 'STOPPED';
}

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
function assertSupportsPause(provider: Provider, record: DeploymentRecord): void {
  const reason = pauseUnsupportedReason(provider, record);
  if (reason !== null) throw new ApiError('ACTION_UNSUPPORTED', reason);
}

/** Before discounts, in micro-USD per hour. @throws {ApiError} PROVIDER_REFUSED where it is undeterminable */
function stoppedPriceOf(providers: Providers, record: DeploymentRecord): number {
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
