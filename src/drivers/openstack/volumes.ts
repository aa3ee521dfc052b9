import type { ObservedVolume, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { done, type Failure, failed, pending } from '../../platform-model/steps.ts';
import type { Server, Volume } from './api.ts';
import { KEEPS_DATA } from './client.ts';
import { detachFrom, isStuck, removeVolume, stuckVolume } from './destroy.ts';
import { unlessConflict } from './errors.ts';
import { readAttempt } from './objects.ts';
import { type Platform, POLL_MS, type VolumeMethod, waitForVolume } from './platform.ts';
import {
  fromPlatformVolume,
  isCopy,
  isCreated,
  mark,
  refOf,
  toCopy,
  toNoteMetadata,
  usersOf,
} from './translate.ts';

/** First those whose creation is complete, then the oldest: a create whose answer was lost may have made two. */
function inOrder(volumes: readonly Volume[]): Volume[] {
  return volumes.toSorted(
    (a, b) =>
      Number(isCreated(b)) - Number(isCreated(a)) ||
      a.created_at.localeCompare(b.created_at) ||
      a.id.localeCompare(b.id),
  );
}

/** The volumes of a ref. @throws {Error} if there is only one without the mark but with the name: it may be the volume */
async function find({ api }: Platform, ref: OwnerRef): Promise<Volume[]> {
  const isOf = (one: Volume): boolean => one.metadata[mark.ref] === ref && !isCopy(one);
  const named = await api.volumes({ name: ref });
  const own = named.filter(isOf);
  const found = own.length > 0 ? own : (await api.volumes()).filter(isOf);
  const unmarked = named.find(({ metadata }) => metadata[mark.ref] === undefined);
  if (found.length === 0 && unmarked !== undefined)
    throw new Error(
      `the volume ${unmarked.id} has the name ${ref} without the metadata ${mark.ref}: \`openstack volume set --property ${mark.ref}=${ref} ${unmarked.id}\`, or rename it`,
    );
  return inOrder(found);
}

/** Refs of machines by the ids of their servers. */
async function machineRefs({ api }: Platform): Promise<Map<string, OwnerRef>> {
  const servers = (await api.servers()).filter((server) => !isCopy(server));
  return new Map(
    servers
      .flatMap((server) => [[server.id, refOf(server)] as const])
      .filter((pair): pair is [string, OwnerRef] => pair[1] !== undefined),
  );
}

async function show(platform: Platform, ref: OwnerRef, volume: Volume): Promise<ObservedVolume> {
  return fromPlatformVolume(
    volume,
    ref,
    usersOf(volume).length === 0 ? new Map() : await machineRefs(platform),
  );
}

export const getVolume: VolumeMethod<'get'> = async (platform, ref) => {
  const [volume] = await find(platform, ref);
  return volume === undefined
    ? { answer: 'gone' }
    : { answer: 'observed', value: await show(platform, ref, volume) };
};

export const listVolumes: VolumeMethod<'list'> = async (platform) => {
  const [all, refs] = await Promise.all([platform.api.volumes(), machineRefs(platform)]);
  const { marked = [], copied = [] } = Object.groupBy(
    inOrder(all).filter(({ metadata }) => metadata[mark.ref] !== undefined),
    (one) => (isCopy(one) ? 'copied' : 'marked'),
  );
  const byRef = Map.groupBy(marked, ({ metadata }) => metadata[mark.ref] as OwnerRef);
  const copies = copied.map((one) => toCopy(one.metadata[mark.ref] as OwnerRef, one));
  const items: ObservedVolume[] = [];
  const leftovers: { ref: OwnerRef; detail: string }[] = [];
  for (const [ref, [first, ...others]] of byRef) {
    if (first !== undefined) items.push(fromPlatformVolume(first, ref, refs));
    if (others.length > 0) leftovers.push({ ref, detail: others.map(({ id }) => `volume ${id}`).join(', ') });
  }
  return { answer: 'listed', items, leftovers, copies };
};

export const createVolume: VolumeMethod<'create'> = async (platform, spec, cookie) => {
  const { api, options } = platform;
  const [known] = await find(platform, spec.ref);
  if (known?.status === 'error')
    return failed('capacity', `Cinder could not make the volume ${known.id}`, 'certain');
  if (known?.status === 'available' || known?.status === 'in-use') {
    if (!isCreated(known)) await api.addMetadata('volume', `/volumes/${known.id}`, { [mark.id]: known.id });
    return done(await show(platform, spec.ref, known));
  }
  if (known !== undefined) return waitForVolume(`volume:${known.id}`, known);
  if (cookie !== null)
    return failed('unfinished', `the volume ${cookie.slice('volume:'.length)} has vanished`, 'certain');
  const zone = options.datacenters[spec.datacenter]?.volume_zone;
  const type = spec.type === undefined ? undefined : (options.volume_types[spec.type] ?? spec.type);
  const volume = {
    name: spec.ref,
    size: spec.sizeGb,
    ...(zone !== undefined && { availability_zone: zone }),
    ...(type !== undefined && { volume_type: type }),
    metadata: { [mark.ref]: spec.ref, ...toNoteMetadata(spec.note) },
  };
  const { id } = await api.make<Volume>('volume', '/volumes', 'volume', volume);
  return pending(`volume:${id}`, POLL_MS);
};

async function findBoth(
  platform: Platform,
  ref: OwnerRef,
  machine: OwnerRef,
): Promise<{ volume: Volume; server: Server | undefined } | Failure> {
  const [[volume], { server }] = await Promise.all([find(platform, ref), readAttempt(platform, machine)]);
  if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
  return { volume, server };
}

export const attachVolume: VolumeMethod<'attach'> = async (platform, ref, machine, cookie) => {
  const found = await findBoth(platform, ref, machine);
  if ('outcome' in found) return found;
  const { volume, server } = found;
  const { api } = platform;
  if (server === undefined) return failed('gone', `there is no server of ${machine}`);
  const isShelved = server.status === 'SHELVED_OFFLOADED';
  if (usersOf(volume).includes(server.id) && (volume.status === 'in-use' || isShelved)) return done(null);
  if (/^(reserved|attaching|detaching)$/.test(volume.status))
    return waitForVolume(cookie ?? 'attach', volume);
  // Nova had accepted it, and its host could not.
  if (cookie === 'attached' && volume.status === 'available')
    return failed('internal', `Nova could not attach ${volume.id} to ${server.id}`);
  if (volume.status.startsWith('error')) return stuckVolume(volume);
  if (volume.status !== 'available' && volume.status !== 'in-use')
    return failed('conflict', `the volume ${volume.id} is ${volume.status}`);
  // Kept with the volume: its attachment may outlive the server.
  await api.addMetadata('volume', `/volumes/${volume.id}`, { [`${mark.server}${server.id}`]: machine });
  const attachment = { volumeId: volume.id };
  await api.make('compute', `/servers/${server.id}/os-volume_attachments`, 'volumeAttachment', attachment);
  return pending('attached', POLL_MS);
};

export const detachVolume: VolumeMethod<'detach'> = async (platform, ref, machine, cookie) => {
  const found = await findBoth(platform, ref, machine);
  if ('outcome' in found) return found.code === 'gone' ? done(null) : found;
  const { volume, server } = found;
  const ids = Object.entries(volume.metadata).flatMap(([key, of]) =>
    key.startsWith(mark.server) && of === machine ? [key.slice(mark.server.length)] : [],
  );
  const its = usersOf(volume).filter((id) => id === server?.id || ids.includes(id));
  for (const id of its) await detachFrom(platform, volume, id);
  if (its.length > 0) return waitForVolume(cookie ?? 'detach', volume);
  for (const id of ids) {
    const path = `/volumes/${volume.id}/metadata/${mark.server}${id}`;
    await unlessConflict(platform.api.remove('volume', path, KEEPS_DATA));
  }
  return done(null);
};

export const resizeVolume: VolumeMethod<'resize'> = async (platform, ref, sizeGb, cookie) => {
  const [volume] = await find(platform, ref);
  if (volume === undefined) return failed('gone', `there is no volume ${ref}`);
  const { id, size, status } = volume;
  if (status.startsWith('error')) return stuckVolume(volume);
  if (status === 'extending') return waitForVolume(cookie ?? 'extend', volume);
  if (size === sizeGb) return done(await show(platform, ref, volume));
  if (size > sizeGb) return failed('invalid', `the volume ${id} has ${size} GiB and cannot shrink`);
  if (status !== 'available') return failed('conflict', `the volume ${id} is ${status}`);
  await platform.api.act('volume', `/volumes/${id}`, { 'os-extend': { new_size: sizeGb } });
  return pending('extend', POLL_MS);
};

export const destroyVolume: VolumeMethod<'destroy'> = async (platform, ref, _cookie, order) => {
  const volumes = await find(platform, ref);
  const stuck = volumes.find(isStuck);
  if (stuck !== undefined) return stuckVolume(stuck);
  for (const volume of volumes) await removeVolume(platform, volume, order);
  const [first] = volumes;
  return first === undefined ? done(null) : waitForVolume('destroy', first);
};
