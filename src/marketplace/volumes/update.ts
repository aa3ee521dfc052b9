import { invalid } from '../contract/errors.ts';
import { type UpdatedVolume, type UpdateVolume, updatedVolumeSchema } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { assertAffordable } from '../ledger/assert-affordable.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { Provider } from '../providers/provider.ts';
import { requireVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertWithinLimits } from '../teams/assert-within-limits.ts';
import { type AskedVolume, askVolume, assertIdle, awaitVolume } from './intents.ts';
import { assertName, assertSize } from './limits.ts';
import { newPrice } from './locations.ts';
import { showVolume, toVolume } from './read.ts';
import { writeVolume } from './snapshot.ts';

type UpdateDeps = Pick<Deps, 'store' | 'clock' | 'options' | 'providers'>;

/**
 * M: PATCH /api/volumes/{volumeId} (Volume rules, 4). The provider does not get the name. If the size changes too, both
 * are written together.
 * @throws {ApiError} PROVIDER_SLOW: the request went through; any other: nothing changed
 */
export async function updateVolume(
  deps: UpdateDeps,
  caller: Caller,
  volumeId: string,
  { name, sizeInGb }: UpdateVolume,
): Promise<UpdatedVolume> {
  const { store, clock, options, providers } = deps;
  const until = clock.now() + options.lifecycleWaitMs;
  const volumeProvider = requireVolumeProvider(
    providers,
    await ownVolume(store.read, caller, volumeId, 'change'),
  );
  const asked = await store.transact(async (tx): Promise<AskedVolume | null> => {
    const record = await ownVolume(tx, caller, volumeId, 'change');
    const toSizeGb = assertAllowed(volumeProvider, record, { name, sizeInGb });
    if (toSizeGb === null) {
      if (name !== undefined) await rename(tx, record, name);
      return null;
    }
    const since = clock.now();
    await assertMayGrow(deps, tx, volumeProvider, record, toSizeGb);
    assertIdle(record, await tx.volumes.attachmentsOf({ volumeId: record.id }), since, options);
    const intent = { kind: 'resize', by: caller.userId, since, until, toSizeGb } as const;
    return askVolume(tx, record, { ...intent, ...(name !== undefined && { name }) });
  });
  if (asked === null) return updatedVolumeSchema.parse(await showVolume(deps, volumeId));
  const { toSizeGb = 0 } = asked.intent;
  const done = await awaitVolume(deps, asked, ({ record }) => record.sizeGb >= toSizeGb);
  return updatedVolumeSchema.parse(toVolume(done, deps));
}

/** The last name wins: a pending resize must not restore an older one. */
async function rename(tx: Transaction, record: VolumeRecord, name: string): Promise<void> {
  const { action } = record;
  if (action?.name !== undefined) {
    const { name: _, ...unnamed } = action;
    await writeVolume(tx, record, { name, action: unnamed });
  } else if (name !== record.name) await writeVolume(tx, record, { name });
}

/** @throws {ApiError} VALIDATION_ERROR with `details.reason` insufficient_balance or quota_exceeded */
async function assertMayGrow(
  deps: UpdateDeps,
  tx: Transaction,
  { profile }: VolumeProvider,
  record: VolumeRecord,
  toSizeGb: number,
): Promise<void> {
  const { id, teamId, sizeGb } = record;
  const now = deps.clock.now();
  const { rateMicroUsd } = await newPrice(tx, profile, { ...record, sizeGb: toSizeGb }, now);
  await assertAffordable(deps, tx, { teamId, rateMicroUsd, insteadOf: id }, now);
  await assertWithinLimits(deps, tx, teamId, { volumeGb: toSizeGb - sizeGb });
}

/** The requested size; null: the volume is not resized. */
function assertAllowed(
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
  { name, sizeInGb }: UpdateVolume,
): number | null {
  const { provider, profile } = volumeProvider;
  if (!profile.grow && !profile.rename)
    throw invalid('', `Volumes of ${provider.profile.name} cannot be changed after creation.`);
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
    throw invalid('sizeInGb', `${provider.profile.name} does not announce support for resizing volumes`);
  return sizeInGb;
}

function canResize({ catalog }: Provider): boolean {
  return [...catalog.offers.values()].some(({ announcesVolumeResize }) => announcesVolumeResize);
}
