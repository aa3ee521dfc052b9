import type { CreateDeployment, Deployment } from '../contract/deployment.ts';
import type { Deps } from '../deps.ts';
import { priceFor } from '../discounts/price.ts';
import { assertAffordable, type SpendingReader } from '../ledger/assert-affordable.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { newId, toProviderName } from '../model/names.ts';
import type { Caller } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { minimumReservationMinutes } from '../providers/capabilities.ts';
import { assertMember, resolveTeam } from '../teams/access.ts';
import { assertWithinLimits } from '../teams/assert-within-limits.ts';
import { attachAtLaunch, planLaunchVolumes } from '../volumes/launch.ts';
import { toLaunchKey, toRequestedKey } from './launch-key.ts';
import {
  assertInStock,
  type DeploymentPlan,
  planDeployment,
  stockProblem,
  toLaunchRequest,
} from './plan-deployment.ts';
import { minimumRuntimeMinutes } from './terminate.ts';
import { showDeployment } from './to-deployment.ts';

type CreateDeps = Pick<
  Deps,
  'store' | 'clock' | 'random' | 'options' | 'providers' | 'installationId' | 'wake'
>;

/** What the record of a new deployment is made of. */
interface NewDeployment {
  id: string;
  caller: Caller;
  teamId: string;
  request: CreateDeployment;
  plan: DeploymentPlan;
  key: SshKeyRecord;
  volumes: readonly VolumeRecord[];
  createdAt: number;
  requestId: string | undefined;
}

/**
 * M: POST /api/deployments. One transaction writes the deployment and what it needs; the provider is asked afterwards,
 * so the answer never waits for it. The checks go in this order: the body, tenancy, the balance, the provider's rules.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND; then nothing was written or sent
 */
export async function createDeployment(
  deps: CreateDeps,
  caller: Caller,
  request: CreateDeployment,
  { requestId }: { requestId?: string } = {},
): Promise<Deployment> {
  const { store, clock, random, providers } = deps;
  const requestedKey = toRequestedKey(request);
  const plan = planDeployment(providers, request);
  const teamId = await resolveTeam(deps, caller, request.teamId);
  const createdAt = clock.now();
  const temporary = { id: newId(random, 'ssh'), teamId, createdAt };
  const key = await toLaunchKey(store.read, caller, requestedKey, temporary);
  const minimumMinutes = await minimumOf(deps, caller, plan);
  const asked = { teamId, plan, minimumMinutes, createdAt };
  // The balance comes before what else may be wrong; where nothing else can be, the transaction's own check is enough.
  if (stockProblem(plan) !== null || (request.volumeIds ?? []).length > 0)
    await assertMayRun(deps, store.read, asked);
  assertInStock(plan);
  const id = newId(random, 'dep');
  const record = await store.transact(async (tx) => {
    const volumes = await planLaunchVolumes(deps, tx, {
      caller,
      teamId,
      provider: plan.provider,
      region: plan.region,
      volumeIds: request.volumeIds ?? [],
    });
    // What others began meanwhile counts too: here the team is locked, after the volumes.
    await assertMayRun(deps, tx, asked);
    await assertMember(tx, caller, teamId);
    return insert(deps, tx, { id, caller, teamId, request, plan, key, volumes, createdAt, requestId });
  });
  deps.wake(record.providerId, id);
  if ((request.volumeIds ?? []).length > 0) deps.wake(record.providerId);
  return showDeployment({ store, clock, providers }, record);
}

/** For how long it has to run at least, in minutes. */
function minimumOf(
  { store, options }: CreateDeps,
  { userId }: Caller,
  { provider, offer, region }: DeploymentPlan,
): Promise<number> {
  const providerMinimumRuntimeMinutes = minimumReservationMinutes(provider, offer, region);
  return minimumRuntimeMinutes(store.read, options, { userId, providerMinimumRuntimeMinutes });
}

/** @throws {ApiError} VALIDATION_ERROR with `details.reason` insufficient_balance or quota_exceeded */
async function assertMayRun(
  deps: CreateDeps,
  read: SpendingReader,
  asked: { teamId: string; plan: DeploymentPlan; minimumMinutes: number; createdAt: number },
): Promise<void> {
  const { teamId, plan, minimumMinutes, createdAt } = asked;
  const { rateMicroUsd } = await priceFor(read, teamId, plan.offer.priceMicroUsdPerHour, createdAt);
  const commitment = { teamId, rateMicroUsd, minimumRuntimeMinutes: minimumMinutes };
  await assertAffordable(deps, read, commitment, createdAt);
  await assertWithinLimits(deps, read, teamId, { deployments: 1 });
}

async function insert(deps: CreateDeps, tx: Transaction, wanted: NewDeployment): Promise<DeploymentRecord> {
  const { teamId, plan, key, volumes, createdAt } = wanted;
  const { originalRateMicroUsd, rateMicroUsd, discountPercentage } = await priceFor(
    tx,
    teamId,
    plan.offer.priceMicroUsdPerHour,
    createdAt,
  );
  const record: DeploymentRecord = {
    ...requestedFields(deps, wanted),
    originalRateMicroUsd,
    rateMicroUsd,
    discountPercentage,
    providerRateMicroUsd: plan.offer.providerPriceMicroUsdPerHour,
    status: 'deploying',
    ipAddress: null,
    loginUser: null,
    sshPort: null,
    portForwards: [],
    failureReason: null,
    failureDetails: null,
    originalStoppedRateMicroUsd: null,
    stoppedRateMicroUsd: null,
    totalCostMicroUsd: 0,
    lastCreditDeductionAt: null,
    createdAt,
    startedAt: null,
    stoppedAt: null,
    pausedAt: null,
    pausedMs: 0,
    providerInstanceId: null,
    action: null,
    suspicion: null,
    observedAt: null,
    cleanup: 'none',
    revision: 1,
    sshProof: null,
  };
  if (key.isTemporary) await tx.sshKeys.insert(key);
  await tx.deployments.insert(record);
  await attachAtLaunch(tx, record, volumes, createdAt);
  return record;
}

function requestedFields(
  { installationId }: Pick<Deps, 'installationId'>,
  { id, caller, teamId, request, plan, key, volumes, requestId }: NewDeployment,
) {
  const { provider, offer, region, operatingSystem } = plan;
  const { offerId, gpuType, gpuModel, gpuCount, instanceType, vcpus, memoryGb, storageGb, extras } = offer;
  const providerName = toProviderName(installationId, id);
  const launch = toLaunchRequest({
    providerName,
    offerId,
    region,
    image: offer.osOptions.includes(operatingSystem) ? operatingSystem : null,
    publicKey: key.publicKey,
    cloudInit: request.cloudInit,
    providerVolumeIds: volumes.flatMap((volume) => volume.providerVolumeId ?? []),
  });
  return {
    id,
    name: request.name ?? defaultName(plan, id),
    userId: caller.userId,
    teamId,
    providerName,
    providerId: provider.id,
    offerId,
    gpuType,
    gpuModel,
    gpuCount,
    region,
    operatingSystem,
    instanceType,
    vcpus,
    memoryGb,
    storageGb,
    extras: { ...extras },
    sshKeyId: key.id,
    tempSshKeyId: key.isTemporary ? key.id : null,
    sshKeyName: key.name,
    sshKeyFingerprint: key.fingerprint,
    providerMinimumRuntimeMinutes: minimumReservationMinutes(provider, offer, region),
    launch: {
      state: 'wanted' as const,
      request: launch,
      sentAt: null,
      looks: 0,
      ...(requestId !== undefined && { requestId }),
    },
  };
}

/** Such as `h100-eu-frankfurt-3f9a`. */
function defaultName({ offer, region }: DeploymentPlan, id: string): string {
  return `${offer.gpuType.toLowerCase()}-${region}-${id.slice(-4)}`;
}
