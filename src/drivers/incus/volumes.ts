import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type {
  ObservedVolume,
  OwnerRef,
  Step,
  VolumeSpec,
  VolumeUse,
} from '../../orchestrator/model/platform-driver.ts';
import { done, failed, unfinished } from '../../platform-model/steps.ts';
import { heldBySnapshots } from '../kit/foreign-snapshots.ts';
import { type Instance, targetOf, type Volume } from './api.ts';
import { IncusRefusal, isConflict, isNotFound, unlessConflict } from './errors.ts';
import { findMachine } from './finder.ts';
import { isJudgeable, NO_MEMBER } from './fleet.ts';
import { failureOf, pathOf, underWay } from './operations.ts';
import { NO_ROOM, placesForVolume, toPlacing } from './placement.ts';
import type { Platform, VolumeMethod } from './platform.ts';
import {
  deviceOf,
  gib,
  hostOf,
  isMarked,
  isName,
  isOurs,
  mark,
  refOf,
  toPlatformVolume,
  usersOf,
} from './translate.ts';
import {
  changeVolume,
  findVolume,
  isIncomplete,
  isOn,
  isVolumeBusy,
  original,
  poolOf,
  readVolumes,
  showVolume,
  showVolumes,
  snapshotsOf,
  volumePath,
  volumesNamed,
} from './volume-records.ts';

/** Incus reports the use of one volume a request. */
const STATES_AT_ONCE = 8;

export const getVolume: VolumeMethod<'get'> = async (platform, ref) => {
  const volume = await findVolume(platform, ref);
  if (volume === undefined) return { answer: 'gone' };
  return { answer: 'observed', value: await showVolume(platform, volume) };
};

export const listVolumes: VolumeMethod<'list'> = async (platform) => {
  const volumes = await readVolumes(platform);
  const groups = [...Map.groupBy(volumes.filter(isOurs), ({ name }) => name).values()];
  const items = groups.map(original).filter((one) => one !== undefined);
  const others = volumes.filter((one) => !items.includes(one));
  return {
    answer: 'listed',
    items: await showVolumes(platform, items),
    copies: others.filter(isMarked).map((one) => ({ ref: refOf(one), name: one.name, ...hostField(one) })),
    leftovers: others.filter(isIncomplete).map((one) => ({
      ref: one.name,
      detail: `an incomplete copy of the volume ${one.config[mark.copyOf]}, made to move it`,
      ...hostField(one),
    })),
  };
};

export const readUsage: VolumeMethod<'usage'> = async (platform) => {
  const { api } = platform;
  const ours = [...Map.groupBy((await readVolumes(platform)).filter(isOurs), ({ name }) => name).values()];
  const volumes = ours.map(original).filter((one) => one !== undefined);
  const items: VolumeUse[] = [];
  for (let from = 0; from < volumes.length; from += STATES_AT_ONCE) {
    const read = volumes.slice(from, from + STATES_AT_ONCE).map(async (volume) => {
      const usedBytes = await api.usedBytes(poolOf(platform), volume);
      if (usedBytes !== undefined) items.push({ ref: refOf(volume), usedBytes });
    });
    await Promise.all(read);
  }
  return { answer: 'listed', items };
};

export const placeVolume: VolumeMethod<'place'> = async (platform, spec, avoidHosts) => {
  const { options, fleet } = platform;
  const now = await fleet.read();
  if (!isJudgeable(now)) return { answer: 'unknown', reason: NO_MEMBER };
  const counted = [...new Set(now.volumes.map(({ name }) => name))];
  return toPlacing(placesForVolume({ ...spec, avoidHosts }, now, options), now, counted, spec.host);
};

/** Creates a volume. Like the changes below, it continues from what the platform shows, so it needs no cookie. */
export async function createVolume(platform: Platform, spec: VolumeSpec): Promise<Step<ObservedVolume>> {
  if (!isName(spec.ref)) return failed('invalid', `${spec.ref} is not a valid Incus name`);
  const { api, options, fleet, call } = platform;
  const known = await findVolume(platform, spec.ref);
  if (known !== undefined) return done(await showVolume(platform, known));
  if ((await volumesNamed(platform, spec.ref)).some(isIncomplete))
    return unfinished('an incomplete copy of another volume has its name');
  const now = await fleet.read();
  if (!isJudgeable(now)) return failed('transient', NO_MEMBER);
  const [place] = placesForVolume(spec, now, options);
  if (place === undefined) return failed('capacity', NO_ROOM);
  const body = toPlatformVolume(spec, options);
  await api.client.send('POST', volumePath(platform), { query: targetOf(place.host.name), body, call });
  const made = await findVolume(platform, spec.ref).catch(() => undefined);
  return made === undefined ? underWay('make') : done(await showVolume(platform, made));
}

export async function attachVolume(
  platform: Platform,
  ref: OwnerRef,
  machine: OwnerRef,
): Promise<Step<null>> {
  const { api, options, call } = platform;
  const [volume, instance] = await Promise.all([findVolume(platform, ref), machineOf(platform, machine)]);
  if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
  if (instance === undefined) return failed('gone', `there is no instance ${machine}`);
  if (deviceFor(instance, ref, poolOf(platform)) !== undefined) return done(null);
  if (!isOn(volume, instance.location))
    return failed('elsewhere', `it is on ${volume.location}, and ${machine} is on ${instance.location}`);
  // Earlier copies miss everything that is written from now on.
  if (volume.config[mark.copiedTo] && !(await changeVolume(platform, volume, { [mark.copiedTo]: '' })))
    return underWay('attach');
  const name = deviceOf(ref);
  if (instance.devices[name] !== undefined)
    return failed('conflict', `${machine} has another device ${name}`);
  const isMounted = options.volume_content === 'filesystem';
  const device = {
    type: 'disk',
    pool: poolOf(platform),
    source: ref,
    ...(isMounted && { path: `/mnt/${name}` }),
  };
  const body = { devices: { [name]: device }, config: changeOf(ref, platform) };
  const sending = api.client.send('PATCH', pathOf(instance.name), { body, etag: instance.etag, call });
  // Another part of the machine may have changed since it was read.
  return (await unlessConflict(sending)) === undefined ? underWay('attach') : done(null);
}

export async function detachVolume(
  platform: Platform,
  ref: OwnerRef,
  machine: OwnerRef,
  cookie: string | null,
): Promise<Step<null>> {
  const instance = await machineOf(platform, machine);
  return instance === undefined ? done(null) : detachFrom(platform, ref, instance.name, cookie);
}

async function detachFrom(
  platform: Platform,
  ref: OwnerRef,
  name: string,
  cookie: string | null,
): Promise<Step<null>> {
  const { api, call } = platform;
  const found = await api.instanceToReplace(name);
  if (found === undefined) return done(null);
  const all = (found.value['devices'] ?? {}) as Instance['devices'];
  const device = deviceFor({ devices: all }, ref, poolOf(platform));
  if (device === undefined) return done(null);
  const problem = await failureOf(api, cookie, 'detach');
  if (problem !== undefined) return problem;
  const { [device]: _detached, ...devices } = all;
  const config = { ...(found.value['config'] as Instance['config'] | null), ...changeOf(ref, platform) };
  const body = { ...found.value, devices, config };
  const reply = await unlessConflict(api.client.send('PUT', pathOf(name), { body, etag: found.etag, call }));
  return underWay(reply === undefined ? 'detach' : `detach:${reply.operation}`);
}

export async function resizeVolume(
  platform: Platform,
  ref: OwnerRef,
  sizeGb: number,
): Promise<Step<ObservedVolume>> {
  const { options } = platform;
  const volume = await findVolume(platform, ref);
  if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
  const shown = await showVolume(platform, volume);
  if (shown.sizeGb === sizeGb) return done(shown);
  if ((shown.sizeGb ?? 0) > sizeGb) return failed('invalid', `it already has ${shown.sizeGb} GB`);
  if (options.volume_content === 'block' && usersOf(volume).length > 0)
    return failed('conflict', 'a block volume grows only while it is not attached');
  const changes = { size: gib(sizeGb), ...(volume.config[mark.copiedTo] && { [mark.copiedTo]: '' }) };
  const isAsRead = await changeVolume(platform, volume, changes);
  return isAsRead ? done({ ...shown, sizeGb }) : underWay('resize');
}

/** Destroys every volume of Berth's with exactly this name, and incomplete copies. Waits for an operator's snapshots. */
export async function destroyVolume(
  platform: Platform,
  ref: OwnerRef,
  cookie: string | null,
  order: DestroyOrder,
): Promise<Step<null>> {
  const { api, options, call } = platform;
  const ours = async () =>
    (await volumesNamed(platform, ref)).filter((one) => isOurs(one) || isIncomplete(one));
  // Throws for a volume with only part of the mark, so that it is not destroyed.
  await findVolume(platform, ref);
  const found = await ours();
  if (found.length === 0) return done(null);
  const { on_foreign_snapshot: policy } = options;
  const names = policy === 'delete' ? [] : await snapshotsOf(platform, ref);
  if (names.length > 0) return failed('conflict', heldBySnapshots({ ref, kind: 'snapshots', names }, policy));
  for (const name of new Set(found.flatMap(usersOf))) {
    const step = await detachFrom(platform, ref, name, cookie);
    if (step.outcome !== 'done') return step;
  }
  if (await isVolumeBusy(platform, ref)) return underWay('destroy');
  for (const { location } of found) {
    try {
      const query = targetOf(location);
      await api.client.send('DELETE', volumePath(platform, ref), { query, order, call });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
  return (await ours()).length === 0 ? done(null) : underWay('destroy');
}

/** @throws {Error} if the machine's existence is unknown */
async function machineOf(platform: Platform, ref: OwnerRef): Promise<Instance | undefined> {
  const found = await findMachine(platform, ref);
  if (found.is === 'unknown') throw new IncusRefusal(503, found.reason, 'GET');
  if (found.is === 'ours' && found.isMoving) throw new IncusRefusal(503, `Incus is moving ${ref}`, 'GET');
  if (found.is !== 'ours') await platform.api.assertProject();
  return found.is === 'ours' ? found.instance : undefined;
}

/** A setting that makes the tag differ, even if a machine was changed twice and is as it was before. */
function changeOf(ref: OwnerRef, { call }: Platform): Instance['config'] {
  return call === undefined ? {} : { [mark.change]: `${call.fence} ${ref}` };
}

function deviceFor({ devices }: Pick<Instance, 'devices'>, ref: OwnerRef, pool: string): string | undefined {
  return Object.entries(devices).find(
    ([, { type, source, pool: of }]) =>
      type === 'disk' && source === ref && (of === undefined || of === pool),
  )?.[0];
}

function hostField(volume: Volume): { host?: string } {
  const host = hostOf(volume);
  return host === undefined ? {} : { host };
}
