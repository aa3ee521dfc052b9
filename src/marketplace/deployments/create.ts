import type { CreateDeployment, Deployment } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type Price, priceFor } from '../discounts/price.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import { type CreateOnce, notOnce } from '../model/create-once.ts';
import { type DeploymentRecord, untouchedDeployment } from '../model/deployment-record.ts';
import { newId, toProviderName } from '../model/names.ts';
import { type Caller, ownDeployment } from '../model/own-rows.ts';
import type { SshKeyRecord } from '../model/people.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { assertSold } from '../offers/sales-pauses.ts';
import { minimumReservationMinutes } from '../providers/capabilities.ts';
import { assertMayCreate, resolveTeam } from '../teams/access.ts';
import { assertWithinLimits } from '../teams/assert-within-limits.ts';
import { attachAtLaunch, planLaunchVolumes } from '../volumes/attach.ts';
import {
  assertInStock,
  type DeploymentPlan,
  planDeployment,
  toLaunchKey,
  toLaunchRequest,
  toRequestedKey,
} from './plan-deployment.ts';
import { minimumRuntimeMinutes } from './terminate.ts';
import { showDeployment } from './to-deployment.ts';

type CreateDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'options' | 'providers' | 'installationId'>;

interface NewDeployment {
  id: string;
  caller: Caller;
  teamId: string;
  request: CreateDeployment;
  plan: DeploymentPlan;
  key: SshKeyRecord;
  volumes: readonly VolumeRecord[];
  price: Price;
  createdAt: number;
  requestId: string | undefined;
}

/**
 * M: POST /api/deployments. One transaction writes everything; the provider is called later. Order of the checks: body
 * and offer, tenancy, balance, limits, stock, volumes.
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND; then nothing was written or sent
 */
export async function createDeployment(
  deps: CreateDeps,
  caller: Caller,
  request: CreateDeployment,
  { requestId, once = notOnce }: { requestId?: string; once?: CreateOnce } = {},
): Promise<Deployment> {
  const { store, clock, random, providers } = deps;
  const load = (read: Pick<Reader, 'deployments' | 'teams'>, made: string) =>
    ownDeployment(read, caller, made, 'read');
  const earlier = await once.earlier(store.read, clock.now(), load);
  if (earlier !== null) return showDeployment(deps, earlier);
  const requestedKey = toRequestedKey(request);
  const plan = planDeployment(providers, request);
  const teamId = await resolveTeam(deps, caller, request.teamId);
  const createdAt = clock.now();
  const temporary = { id: newId(random, 'ssh'), teamId, createdAt };
  const key = await toLaunchKey(store.read, caller, requestedKey, temporary);
  const providerMinimumRuntimeMinutes = minimumReservationMinutes(plan.provider, plan.offer, plan.region);
  const minimum = { userId: caller.userId, providerMinimumRuntimeMinutes };
  const runtime = { minimumRuntimeMinutes: await minimumRuntimeMinutes(deps, minimum) };
  const id = newId(random, 'dep');
  const record = await store.transact(async (tx) => {
    const first = await once.earlier(tx, createdAt, load);
    if (first !== null) return first;
    // Volumes are locked before the team, but their problems are reported after those of the balance.
    const volumes = await planLaunchVolumes(deps, tx, {
      caller,
      teamId,
      provider: plan.provider,
      region: plan.region,
      volumeIds: request.volumeIds ?? [],
    }).catch(toProblem);
    const price = await priceFor(tx, teamId, plan.offer.priceMicroUsdPerHour, createdAt);
    const { rateMicroUsd } = price;
    await assertAffordable(deps, tx, { teamId, rateMicroUsd, ...runtime }, createdAt);
    await assertWithinLimits(deps, tx, teamId, { deployments: 1 });
    // The team is locked from here on, so no member can leave it meanwhile.
    await assertMayCreate(tx, caller, teamId);
    await assertSold(tx, { ...plan.offer, region: plan.region }, createdAt);
    assertInStock(plan);
    if (volumes instanceof ApiError) throw volumes;
    const wanted = { id, caller, teamId, request, plan, key, volumes, price, createdAt, requestId };
    const made = await insert(deps, tx, wanted);
    await once.keep(tx, made);
    return made;
  });
  return showDeployment({ store, clock, providers }, record);
}

function toProblem(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

async function insert(deps: CreateDeps, tx: Transaction, wanted: NewDeployment): Promise<DeploymentRecord> {
  const { plan, key, volumes, price, createdAt } = wanted;
  const { originalRateMicroUsd, rateMicroUsd, discountPercentage } = price;
  const record: DeploymentRecord = {
    ...untouchedDeployment,
    ...requestedFields(deps, wanted),
    originalRateMicroUsd,
    rateMicroUsd,
    discountPercentage,
    providerRateMicroUsd: plan.offer.providerPriceMicroUsdPerHour,
    orderedProviderRateMicroUsd: plan.offer.providerPriceMicroUsdPerHour,
    createdAt,
  };
  if (key.isTemporary) await tx.sshKeys.insert(key);
  await tx.deployments.insert(record);
  await attachAtLaunch(tx, record, volumes, createdAt);
  await tx.signals.wake(record.providerId, record.id);
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
      ...(requestId !== undefined && { requestId }),
    },
  };
}

/** A name such as `h100-eu-frankfurt-3f9a`. */
function defaultName({ offer, region }: DeploymentPlan, id: string): string {
  return `${offer.gpuType.toLowerCase()}-${region}-${id.slice(-4)}`;
}
