import { ApiError, invalid } from '../contract/errors.ts';
import {
  type AttachedVolume,
  attachedVolumeSchema,
  type DetachedVolume,
  detachedVolumeSchema,
  type Volume,
} from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { assertNotFrozen } from '../ledger/assert-affordable.ts';
import { type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import { hasTimedOut, newIntent } from '../model/intent.ts';
import { type Caller, ownDeployment, ownVolume } from '../model/own-rows.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import type { Provider } from '../providers/provider.ts';
import {
  requireVolumeProvider,
  toVolumeProvider,
  type VolumeProvider,
} from '../providers/volume-provider.ts';
import {
  type AskedVolume,
  askVolume,
  assertIdle,
  assertMade,
  assertUnchanging,
  awaitVolume,
  putIntent,
} from './intents.ts';
import { assertFits, assertRoom } from './limits.ts';
import { showVolume, toVolume } from './read.ts';

type AttachDeps = Pick<Deps, 'store' | 'clock' | 'options' | 'providers'>;

/**
 * M: POST /api/volumes/{volumeId}/attach. Waits while the provider restarts the instance. Attaching again succeeds.
 * @throws {ApiError} PROVIDER_SLOW: it went through, or may have; any other: nothing changed
 */
export async function attachVolume(
  deps: AttachDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<AttachedVolume> {
  return attachedVolumeSchema.parse(await changeAttachment('attach', deps, caller, volumeId, deploymentId));
}

/** M: POST .../detach; "data is preserved on detach" (Volume rules, 6). @throws {ApiError} as {@link attachVolume} */
export async function detachVolume(
  deps: AttachDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<DetachedVolume> {
  return detachedVolumeSchema.parse(await changeAttachment('detach', deps, caller, volumeId, deploymentId));
}

/** The locked rows of an attach or detach, and its parameters. */
interface Request {
  volumeProvider: VolumeProvider;
  record: VolumeRecord;
  deployment: DeploymentRecord;
  existing: readonly AttachmentRecord[];
  known: AttachmentRecord | undefined;
  now: number;
}

/** Writes the intent and waits until the provider shows the change. */
async function changeAttachment(
  kind: 'attach' | 'detach',
  deps: AttachDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<Volume> {
  const { store, clock, options, providers } = deps;
  const until = clock.now() + options.lifecycleWaitMs;
  const volumeProvider = requireVolumeProvider(
    providers,
    await ownVolume(store.read, caller, volumeId, 'read'),
  );
  const asked = await store.transact(async (tx): Promise<AskedVolume | null> => {
    const purpose = kind === 'attach' ? 'change' : 'end';
    const deployment = await ownDeployment(tx, caller, deploymentId, purpose);
    const record = await ownVolume(tx, caller, volumeId, purpose);
    const existing = await tx.volumes.attachmentsOf({ volumeId: record.id });
    const known = existing.find((attachment) => attachment.deploymentId === deploymentId);
    const now = clock.now();
    const request = { volumeProvider, record, deployment, existing, known, now };
    const begin = kind === 'attach' ? beginAttach : beginDetach;
    if (!(await begin(deps, tx, request))) return null;
    const begun = known?.intent ?? null;
    const isRepeated = begun?.kind === kind && isActive(deployment) && !hasTimedOut(begun, now, options);
    if (isRepeated) return { record, intent: { ...begun, until } };
    // An earlier call may still take effect, also one for the opposite.
    const attempt = known === undefined || known.intent === null ? 0 : 1;
    const intent = { kind, by: caller.userId, since: now, until, attempt, deploymentId };
    return askVolume(tx, record, intent, kind === 'attach' ? { status: 'attached' } : {});
  });
  if (asked === null) return showVolume(deps, volumeId);
  const end = kind === 'attach' ? 'attached' : undefined;
  const done = await awaitVolume(
    deps,
    asked,
    ({ attachments }) => attachments.find((it) => it.deploymentId === deploymentId)?.state === end,
  );
  return toVolume(done, deps);
}

/** Returns whether there is anything to do. @throws {ApiError} if the change is not allowed */
async function beginAttach({ options }: AttachDeps, tx: Transaction, request: Request): Promise<boolean> {
  const { volumeProvider, record, deployment, existing, known, now } = request;
  const { no_attach: refusal } = volumeProvider.profile;
  if (refusal !== undefined) throw invalid('', refusal);
  if (known?.state === 'attached') return false;
  const field = 'deploymentId';
  if (deployment.status !== 'running')
    throw invalid(field, `the deployment is ${deployment.status}; it must be running`);
  if (known === undefined) assertFits(field, volumeProvider, record, existing, deployment);
  const others = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  assertRoom(field, volumeProvider, others.filter(({ volumeId }) => volumeId !== record.id).length + 1);
  assertMade(record);
  assertIdle(record, existing, now, options);
  await assertUnchanging(tx, deployment, now, options);
  await assertNotFrozen(tx, record.teamId, now);
  return true;
}

async function beginDetach({ options }: AttachDeps, tx: Transaction, request: Request): Promise<boolean> {
  const { volumeProvider, record, deployment, existing, known, now } = request;
  if (known === undefined)
    throw invalid('deploymentId', `the volume ${record.volumeId} is not attached to the deployment`);
  assertMade(record);
  // A repeated detach waits for the first one, and an ended deployment gives its volumes back.
  const isBegun = known.state === 'detaching' || !isActive(deployment);
  if (!isBegun) assertDetachable(volumeProvider, deployment);
  assertIdle(record, isBegun ? [] : existing, now, options);
  if (!isBegun) await assertUnchanging(tx, deployment, now, options);
  return true;
}

/** M: Volume rules, 6: some providers do not detach from active deployments. */
function assertDetachable({ profile }: VolumeProvider, { status }: DeploymentRecord): void {
  if (profile.no_detach !== undefined) throw invalid('', profile.no_detach);
  if (status === 'deploying')
    throw invalid('deploymentId', 'the deployment is deploying; wait until it is running');
}

const FIELD = 'volumeIds';

/**
 * M: Per-provider `volumeIds` rules.
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND or CHANGE_IN_PROGRESS, "before anything is created"
 */
export async function planLaunchVolumes(
  { clock, options }: Pick<Deps, 'clock' | 'options'>,
  read: Pick<Reader, 'volumes' | 'teams'>,
  wanted: {
    caller: Caller;
    teamId: string;
    provider: Provider;
    region: string;
    volumeIds: readonly string[];
  },
): Promise<VolumeRecord[]> {
  const { caller, teamId, provider, region, volumeIds } = wanted;
  if (volumeIds.length === 0) return [];
  const volumeProvider = toVolumeProvider(provider);
  if (volumeProvider === null)
    throw invalid(FIELD, `${provider.profile.name} does not offer volumes; omit it`);
  const repeated = volumeIds.find((id, index) => volumeIds.indexOf(id) !== index);
  if (repeated !== undefined) throw invalid(FIELD, `${repeated} is given twice`);
  assertRoom(FIELD, volumeProvider, volumeIds.length);
  const volumes = new Map<string, VolumeRecord>();
  // Every launch locks volumes in one order, so that two launches with the same volumes cannot deadlock.
  for (const volumeId of volumeIds.toSorted()) {
    const volume = await ownVolume(read, caller, volumeId, 'change');
    const existing = await read.volumes.attachmentsOf({ volumeId: volume.id });
    assertFits(FIELD, volumeProvider, volume, existing, { providerId: provider.id, region, teamId });
    if (volume.providerVolumeId === null)
      throw new ApiError('CHANGE_IN_PROGRESS', `${volumeId} does not exist yet; try again in a moment.`);
    // A shared volume may be attached to a second instance while it is being attached to a first.
    assertIdle(volume, volumeProvider.profile.shareable ? [] : existing, clock.now(), options);
    volumes.set(volumeId, volume);
  }
  return volumeIds.flatMap((volumeId) => volumes.get(volumeId) ?? []);
}

/** Attaches volumes that were planned in this transaction, so that no other request can take them. */
export async function attachAtLaunch(
  tx: Pick<Transaction, 'volumes'>,
  { id: deploymentId, userId: by }: Pick<DeploymentRecord, 'id' | 'userId'>,
  volumes: readonly VolumeRecord[],
  at: number,
): Promise<void> {
  for (const volume of volumes) {
    const intent = newIntent(volume, { kind: 'attach', by, since: at, until: null });
    await putIntent(tx, volume, { ...intent, deploymentId }, { status: 'attached' });
  }
}
