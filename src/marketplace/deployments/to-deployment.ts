import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Deployment } from '../contract/deployment.ts';
import { toTimestamp, toTimestampOrNull } from '../contract/values.ts';
import { shownExtras } from '../offers/shown-extras.ts';
import { pauseUnsupportedReason, restartUnsupportedReason } from '../providers/capabilities.ts';
import type { Providers } from '../providers/provider.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import { stoppedMs } from './running-time.ts';

const HOUR_MS = 3_600_000;

/** M: Deployment, as a list has it. */
export function toDeployment(record: DeploymentRecord, providers: Providers, now: number): Deployment {
  const { id, name, userId, teamId, gpuType, offerId, providerId, gpuCount, region } = record;
  const { operatingSystem, instanceType, sshKeyId, tempSshKeyId, sshKeyName, sshKeyFingerprint } = record;
  const { status, providerMinimumRuntimeMinutes, vcpus, portForwards } = record;
  return {
    ...{ id, name, userId, teamId, gpuType, offerId, providerId, gpuCount, region },
    ...{ operatingSystem, instanceType, sshKeyId, tempSshKeyId, sshKeyName, sshKeyFingerprint },
    ...{ status, providerMinimumRuntimeMinutes, vcpus, portForwards },
    gpuModelId: `${gpuType}_${offerId}`,
    memory: record.memoryGb,
    storage: record.storageGb,
    ...toEndpoint(record),
    ...toTimes(record, now),
    ...toMoney(record),
    ...toCapabilities(record, providers),
    ...(record.failureReason !== null && { failureReason: record.failureReason }),
    ...(record.failureDetails !== null && { failureDetails: record.failureDetails }),
  };
}

/** M: `extras`: "On the single-deployment response". */
export function toSingleDeployment(record: DeploymentRecord, providers: Providers, now: number): Deployment {
  return { ...toDeployment(record, providers, now), extras: shownExtras(record) };
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

function toMoney(record: DeploymentRecord) {
  const { discountPercentage, stoppedRateMicroUsd } = record;
  return {
    totalCost: usdFromMicroUsd(record.totalCostMicroUsd),
    hourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(record.originalRateMicroUsd),
    discountPercentage,
    hasDiscount: discountPercentage > 0,
    stoppedHourlyRate: stoppedRateMicroUsd === null ? null : usdFromMicroUsd(stoppedRateMicroUsd),
  };
}

/** A provider that the configuration does not have any more can do nothing. */
function toCapabilities(record: DeploymentRecord, providers: Providers) {
  const provider = providers.get(record.providerId);
  const unknown = `${record.providerId} is not offered any more.`;
  const pauseReason = provider === undefined ? unknown : pauseUnsupportedReason(provider, record);
  const restartReason = provider === undefined ? unknown : restartUnsupportedReason(provider, record);
  return {
    supportsPause: pauseReason === null,
    pauseUnsupportedReason: pauseReason,
    supportsRestart: restartReason === null,
  };
}
