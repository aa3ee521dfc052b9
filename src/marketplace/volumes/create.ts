import { ApiError, invalid } from '../contract/errors.ts';
import type { CreateVolume, Volume } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import { type CreateOnce, notOnce } from '../model/create-once.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { fromRefusal, newIntent } from '../model/intent.ts';
import { newId, toProviderName } from '../model/names.ts';
import { type Caller, ownDeployment, ownVolume } from '../model/own-rows.ts';
import type { Reader, Transaction } from '../model/store.ts';
import { toAttachment, type VolumeRecord } from '../model/volume-record.ts';
import { whenWritten } from '../model/waiting.ts';
import { assertSold } from '../offers/sales-pauses.ts';
import { requestedVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertMayCreate, resolveTeam } from '../teams/access.ts';
import { assertWithinLimits } from '../teams/assert-within-limits.ts';
import { assertUnchanging } from './intents.ts';
import { assertFits, assertName, assertRoom, assertSize } from './limits.ts';
import { findPlace, newPrice } from './locations.ts';
import { showVolume } from './read.ts';
import { isInTransit, readVolumeSnapshot } from './snapshot.ts';

type CreateVolumeDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'options' | 'providers' | 'installationId'>;

/**
 * M: POST /api/volumes. Answers once the volume is `available`, or `attached` if there is a `deploymentId`. After a
 * wait it answers with `creating`, because a client that got an error might create a second volume.
 * @throws {ApiError} PROVIDER_REFUSED if the provider made no volume: nothing is billed. After any other error, nothing
 * was sent.
 */
export async function createVolume(
  deps: CreateVolumeDeps,
  caller: Caller,
  input: CreateVolume,
  { requestId, once = notOnce }: { requestId?: string; once?: CreateOnce } = {},
): Promise<Volume> {
  const { store, clock, options } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const load = (read: Pick<Reader, 'volumes' | 'teams'>, volumeId: string) =>
    ownVolume(read, caller, volumeId, 'read');
  const record =
    (await once.earlier(store.read, clock.now(), load)) ??
    (await writeVolume(deps, caller, input, { requestId, once, load }));
  const made = await whenWritten(deps, record.id, deadline, async () => {
    const { record: seen, attachments } = await readVolumeSnapshot(store.read, record.id);
    const isOver = seen.status !== 'creating' && seen.action === null && !attachments.some(isInTransit);
    return isOver ? seen : null;
  });
  // What was made earlier may have been deleted since.
  const isNew = !once.isReplay;
  if (isNew && (made?.status === 'error' || made?.status === 'deleted')) throw failed(made);
  return showVolume(deps, record.volumeId);
}

/** Checks and writes the volume, unless another request with its key has just done so. */
async function writeVolume(
  deps: CreateVolumeDeps,
  caller: Caller,
  input: CreateVolume,
  {
    requestId,
    once,
    load,
  }: {
    requestId: string | undefined;
    once: CreateOnce;
    load: (read: Transaction, id: string) => Promise<VolumeRecord>;
  },
): Promise<VolumeRecord> {
  const { store, clock, options, providers } = deps;
  const volumeProvider = requestedVolumeProvider(providers, input.provider);
  const { cloudId, region } = assertValid(volumeProvider, input);
  const teamId = await resolveTeam(deps, caller, input.teamId);
  const wanted = { ...input, region, cloudId, teamId };
  return store.transact(async (tx) => {
    const first = await once.earlier(tx, clock.now(), load);
    if (first !== null) return first;
    const deployment =
      input.deploymentId === undefined ? null : await ownDeployment(tx, caller, input.deploymentId, 'change');
    const now = clock.now();
    const priced = { teamId, region, cloudId, sizeGb: input.sizeInGb };
    const price = await newPrice(tx, volumeProvider.profile, priced, now);
    await assertAffordable(deps, tx, { teamId, rateMicroUsd: price.rateMicroUsd }, now);
    // The team is locked from here on, so no member can leave it meanwhile.
    await assertMayCreate(tx, caller, teamId);
    await assertSold(tx, { providerId: volumeProvider.provider.id, region }, now);
    await assertWithinLimits(deps, tx, teamId, { volumes: 1, volumeGb: input.sizeInGb });
    if (deployment !== null) {
      await assertAttachable(tx, volumeProvider, wanted, deployment);
      await assertUnchanging(tx, deployment, now, options);
    }
    const asked = { wanted, deployment, price, now, requestId };
    const made = await insert(deps, tx, volumeProvider, caller, asked);
    await once.keep(tx, made);
    return made;
  });
}

/** Checks the body, in the order in which M: lists the fields. */
function assertValid(
  volumeProvider: VolumeProvider,
  { name, sizeInGb, region, cloudId, deploymentId }: CreateVolume,
): { region: string; cloudId: string | null } {
  assertName(volumeProvider, name);
  const place = findPlace(volumeProvider, { region, cloudId });
  assertSize(volumeProvider, place.location.id, sizeInGb);
  if (deploymentId !== undefined && !volumeProvider.profile.attach_at_create)
    throw invalid(
      'deploymentId',
      `${volumeProvider.provider.profile.name} does not attach volumes at creation; omit it`,
    );
  return { region: place.location.id, cloudId: place.cloud?.id ?? null };
}

type Wanted = Omit<CreateVolume, 'region' | 'cloudId' | 'teamId'> & {
  region: string;
  cloudId: string | null;
  teamId: string;
};

/** M: Volume rules, 2: "Attach requires a running deployment of the same provider and region." */
async function assertAttachable(
  tx: Transaction,
  volumeProvider: VolumeProvider,
  { name: volumeId, region, teamId }: Wanted,
  deployment: DeploymentRecord,
): Promise<void> {
  const field = 'deploymentId';
  const providerId = volumeProvider.provider.id;
  const volume = { volumeId, providerId, region, teamId, status: 'available' } as const;
  assertFits(field, volumeProvider, volume, [], deployment);
  if (deployment.status !== 'running')
    throw invalid(field, `the deployment is ${deployment.status}; it must be running`);
  const others = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  assertRoom(field, volumeProvider, others.length + 1);
}

async function insert(
  { random, installationId }: CreateVolumeDeps,
  tx: Transaction,
  { profile, provider }: VolumeProvider,
  { userId }: Caller,
  asked: {
    wanted: Wanted;
    deployment: DeploymentRecord | null;
    price: Awaited<ReturnType<typeof newPrice>>;
    now: number;
    requestId: string | undefined;
  },
): Promise<VolumeRecord> {
  const { wanted, deployment, price, now, requestId } = asked;
  const { name, sizeInGb: sizeGb, region, cloudId, teamId } = wanted;
  const id = newId(random, 'vol');
  const record: VolumeRecord = {
    id,
    volumeId: id,
    name,
    userId,
    teamId,
    providerId: provider.id,
    region,
    cloudId,
    type: profile.type ?? null,
    sizeGb,
    resizeGivenUpGb: null,
    providerSizeGb: null,
    status: 'creating',
    ...price,
    totalCostMicroUsd: 0,
    createdAt: now,
    startedAt: null,
    deletedAt: null,
    lastAttachedAt: null,
    lastDetachedAt: null,
    providerName: toProviderName(installationId, id),
    providerVolumeId: null,
    action: newIntent({ revision: 0 }, { kind: 'create', by: userId, since: now, until: null }),
    refusal: null,
    observedAt: null,
    cleanup: 'none',
    usage: null,
    revision: 1,
    deletionTakenAt: null,
    requestId: requestId ?? null,
  };
  await tx.volumes.insert(record);
  if (deployment !== null) {
    const intent = newIntent({ revision: 0 }, { kind: 'attach', by: userId, since: now, until: null });
    const deploymentId = deployment.id;
    await tx.volumes.putAttachment(toAttachment(record, deploymentId, { ...intent, deploymentId }));
  }
  await tx.signals.wake(provider.id, id);
  return record;
}

function failed({ providerId, volumeId, refusal }: VolumeRecord): ApiError {
  if (refusal !== null) return fromRefusal(refusal);
  return new ApiError(
    'PROVIDER_REFUSED',
    `${providerId} failed to create the volume, or did not confirm it; nothing is billed.`,
    { details: { volumeId } },
  );
}
