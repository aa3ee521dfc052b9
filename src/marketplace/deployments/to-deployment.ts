import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Deployment } from '../contract/deployment.ts';
import { toTimestamp, toTimestampOrNull } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { costsOf } from '../ledger/balance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { shownExtras } from '../offers/to-offer.ts';
import { pauseUnsupportedReason, restartUnsupportedReason } from '../providers/capabilities.ts';
import type { Providers } from '../providers/provider.ts';

const HOUR_MS = 3_600_000;

export type ShowDeps = Pick<Deps, 'store' | 'clock' | 'providers'>;

/** M: Deployment, as lists show it. */
export async function showDeployments(
  { store, clock, providers }: ShowDeps,
  records: readonly DeploymentRecord[],
): Promise<Deployment[]> {
  const now = clock.now();
  const costOf = await costsOf(store.read, records, now);
  return records.map((record) => toDeployment(record, providers, now, costOf(record)));
}

/** M: `extras`: "On the single-deployment response". */
export async function showDeployment(deps: ShowDeps, record: DeploymentRecord): Promise<Deployment> {
  const now = deps.clock.now();
  const costOf = await costsOf(deps.store.read, [record], now);
  return { ...toDeployment(record, deps.providers, now, costOf(record)), extras: shownExtras(record) };
}

/** `costMicroUsd`: the total cost up to `now`. */
export function toDeployment(
  record: DeploymentRecord,
  providers: Providers,
  now: number,
  costMicroUsd: number,
): Deployment {
  const { id, name, userId, teamId, gpuType, offerId, providerId, gpuCount, region } = record;
  const { operatingSystem, instanceType, sshKeyId, tempSshKeyId, sshKeyName, sshKeyFingerprint } = record;
  const { status, providerMinimumRuntimeMinutes, vcpus, portForwards } = record;
  return {
    id,
    name,
    userId,
    teamId,
    gpuType,
    offerId,
    providerId,
    gpuCount,
    region,
    operatingSystem,
    instanceType,
    sshKeyId,
    tempSshKeyId,
    sshKeyName,
    sshKeyFingerprint,
    status,
    providerMinimumRuntimeMinutes,
    vcpus,
    portForwards,
    gpuModelId: `${gpuType}_${offerId}`,
    memory: record.memoryGb,
    storage: record.storageGb,
    ...toEndpoint(record),
    ...toTimes(record, now),
    ...toMoney(record, costMicroUsd),
    ...toCapabilities(record, providers),
    ...(record.failureReason !== null && { failureReason: record.failureReason }),
    ...(record.failureDetails !== null && { failureDetails: record.failureDetails }),
  };
}

/** M: `ipAddress` is "Kept while stopped", `sshCommand` "Hidden until running". */
function toEndpoint({ status, ipAddress, loginUser, sshPort }: DeploymentRecord) {
  const isReachable = status === 'running' && ipAddress !== null && loginUser !== null;
  return {
    ipAddress,
    user: loginUser,
    sshPort,
    sshCommand: isReachable ? `ssh -p ${sshPort ?? 22} ${loginUser}@${ipAddress}` : null,
  };
}

function toTimes(record: DeploymentRecord, now: number) {
  return {
    createdAt: toTimestamp(record.createdAt),
    startedAt: toTimestampOrNull(record.startedAt),
    stoppedAt: toTimestampOrNull(record.stoppedAt),
    pausedAt: toTimestampOrNull(record.pausedAt),
    totalPausedHours: stoppedMs(record, now) / HOUR_MS,
    lastCreditDeduction: toTimestampOrNull(record.lastCreditDeductionAt),
  };
}

function toMoney(record: DeploymentRecord, costMicroUsd: number) {
  const { discountPercentage, stoppedRateMicroUsd } = record;
  return {
    totalCost: usdFromMicroUsd(costMicroUsd),
    hourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(record.originalRateMicroUsd),
    discountPercentage,
    hasDiscount: discountPercentage > 0,
    stoppedHourlyRate: stoppedRateMicroUsd === null ? null : usdFromMicroUsd(stoppedRateMicroUsd),
  };
}

/** If the provider is not configured, the deployment can neither stop nor restart. */
function toCapabilities(record: DeploymentRecord, providers: Providers) {
  const provider = providers.get(record.providerId);
  const unknown = `${record.providerId} is no longer offered.`;
  const pauseReason = provider === undefined ? unknown : pauseUnsupportedReason(provider, record);
  const restartReason = provider === undefined ? unknown : restartUnsupportedReason(provider, record);
  return {
    supportsPause: pauseReason === null,
    pauseUnsupportedReason: pauseReason,
    supportsRestart: restartReason === null,
  };
}

type Times = Pick<DeploymentRecord, 'startedAt' | 'stoppedAt' | 'pausedAt' | 'pausedMs'>;

/** The time spent stopped, in milliseconds. It includes a stop that is not over. */
export function stoppedMs({ stoppedAt, pausedAt, pausedMs }: Times, now: number): number {
  return pausedMs + (pausedAt === null ? 0 : Math.max(0, (stoppedAt ?? now) - pausedAt));
}

/** The runtime in milliseconds since the first observed `running` (M: rule 4: "Time stopped does not count"). */
export function runningMs(times: Times, now: number): number {
  if (times.startedAt === null) return 0;
  return Math.max(0, (times.stoppedAt ?? now) - times.startedAt - stoppedMs(times, now));
}
