import { invalid } from '../contract/errors.ts';
import { type UpdatedVolume, type UpdateVolume, updatedVolumeSchema } from '../contract/volume.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { Provider } from '../providers/provider.ts';
import { hourlyRate, requireVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertWithinLimits } from '../teams/assert-within-limits.ts';
import { assertIdle, endResize } from './actions.ts';
import { assertName, assertSize } from './limits.ts';
import { newPrice } from './locations.ts';
import { sendOrUndo, slow, type VolumeDeps } from './refusal.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';
import { syncUntil } from './sync/sync-volume.ts';
import { showVolume } from './to-volume.ts';

/**
 * M: PATCH /api/volumes/{volumeId} (Volume rules, 4). A new name is only ours: the provider knows the volume by another.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND, CHANGE_IN_PROGRESS or PROVIDER_REFUSED: nothing changed.
 *   PROVIDER_SLOW: the request went through.
 */
export async function updateVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  { name, sizeInGb }: UpdateVolume,
): Promise<UpdatedVolume> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const volumeProvider = requireVolumeProvider(providers, await ownVolume(store.read, caller, volumeId));
  const { record, toSizeGb } = await store.transact(async (tx) => {
    const current = await ownVolume(tx, caller, volumeId);
    const grown = assertAllowed(volumeProvider, current, { name, sizeInGb });
    if (grown === null) return { record: await rename(current), toSizeGb: null };
    const now = clock.now();
    await assertMayGrow(deps, tx, volumeProvider, current, grown);
    assertIdle(current, now, options);
    await writeVolume(tx, current, { action: { kind: 'resize', since: now, toSizeGb: grown } });
    return { record: current, toSizeGb: grown };

    async function rename(volume: VolumeRecord): Promise<VolumeRecord> {
      return name === undefined || name === volume.name ? volume : writeVolume(tx, volume, { name });
    }
  });
  if (toSizeGb !== null) await resize(deps, volumeProvider, record, { toSizeGb, name, deadline });
  return updatedVolumeSchema.parse(await showVolume(deps, volumeId));
}

/** @throws {ApiError} VALIDATION_ERROR with `details.reason` insufficient_balance or quota_exceeded */
async function assertMayGrow(
  deps: VolumeDeps,
  tx: Transaction,
  { profile }: VolumeProvider,
  record: VolumeRecord,
  toSizeGb: number,
): Promise<void> {
  const { id, teamId, sizeGb } = record;
  const now = deps.clock.now();
  const { rateMicroUsd } = await newPrice(
    tx,
    teamId,
    hourlyRate(profile, { ...record, sizeGb: toSizeGb }),
    now,
  );
  await assertAffordable(deps, tx, { teamId, rateMicroUsd, insteadOf: id }, now);
  await assertWithinLimits(deps, tx, teamId, { volumeGb: toSizeGb - sizeGb });
}

/** The size that it is to have; null: it is not to grow. */
function assertAllowed(
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
  { name, sizeInGb }: UpdateVolume,
): number | null {
  const { provider, profile } = volumeProvider;
  if (!profile.grow && !profile.rename)
    throw invalid('', `Volumes of ${provider.profile.name} cannot be changed after they were created.`);
  if (record.status !== 'available' && record.status !== 'attached')
    throw invalid('', `The volume is ${record.status} and cannot be changed.`);
  if (name !== undefined) {
    if (!profile.rename) throw invalid('name', `volumes of ${provider.profile.name} cannot be renamed`);
    assertName(volumeProvider, name);
  }
  if (sizeInGb === undefined || sizeInGb === record.sizeGb) return null;
  if (!profile.grow) throw invalid('sizeInGb', `volumes of ${provider.profile.name} cannot grow`);
  if (!(sizeInGb > record.sizeGb))
    throw invalid('sizeInGb', `a volume never shrinks; expected at least ${record.sizeGb} GB`);
  assertSize(volumeProvider, record.region, sizeInGb);
  if (!canResize(provider))
    throw invalid('sizeInGb', `${provider.profile.name} does not announce that it can resize volumes`);
  return sizeInGb;
}

function canResize({ catalog }: Provider): boolean {
  return [...catalog.offers.values()].some(({ announcesVolumeResize }) => announcesVolumeResize);
}

async function resize(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
  { toSizeGb, name, deadline }: { toSizeGb: number; name: string | undefined; deadline: number },
): Promise<void> {
  const { store, clock, options } = deps;
  const call = { timeoutMs: options.polling.callTimeoutMs };
  const problem = await sendOrUndo('resize', record, {
    send: async () => {
      await volumeProvider.provider.client.resizeVolume(record.providerVolumeId ?? '', toSizeGb, call);
    },
    undo: () => transactOnVolume(store, record.id, (tx, snapshot) => endResize(tx, snapshot, clock.now())),
  });
  if (name !== undefined)
    await transactOnVolume(
      store,
      record.id,
      async (tx, snapshot) => void (await writeVolume(tx, snapshot.record, { name })),
    );
  const isOver = (volume: VolumeSnapshot) => volume.record.action?.kind !== 'resize';
  const snapshot = await syncUntil(deps, volumeProvider, record.id, deadline, isOver);
  deps.wake(record.providerId);
  if (snapshot.record.sizeGb !== toSizeGb) throw slow('resize', record, problem);
}
